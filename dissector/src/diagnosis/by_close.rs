//! Explains the end of a connection by a FIN or by a RST.

use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::format::counted;
use crate::frame_number::FrameNumber;

use super::by_silence::{closed_window, no_response, silent, unreachable};
use super::by_terminate::{damaged, end_link};
use super::problem_kind::{ProblemKind, is_fatal_in_startup};
use super::problems::Problem;
use super::track::{BadCrc, Track};
use super::transport::Reset;
use super::verdict::{Cause, Culprit, Link, Verdict};

/// Minimum number of probes without an answer that explain a RST of their sender.
const PROBES: u64 = 2;
/// If an endpoint waits for a response less than this time, in nanoseconds, and then resets the
/// connection, it did not reset because of the missing response.
const MIN_RESPONSE_TIME: u64 = 1_000_000_000;
/// Maximum time between two RSTs that one device sends in the name of both endpoints, in
/// nanoseconds.
const MAX_DISTANCE: u64 = 1_000_000;
/// Minimum number of segments of an endpoint after its own RST. They show that the endpoint did not
/// send the RST.
const SEGMENTS_AFTER: u64 = 2;

/// Explains a RST of the endpoint that sends in `by`.
pub(super) fn reset(track: &Track, by: Direction) -> Option<Verdict> {
    let rst = track.transport.sides[by].rst?;
    let (own, peer) = (track.end(by), track.end(by.peer()));
    let link = Link::new(by, Some(rst.at.frame), format!("{own} resets the connection"));
    if let Some(why) = in_both_names(track) {
        let headline = "a device in the network reset the connection in the name of both endpoints".to_owned();
        let mut verdict = Verdict::new(Cause::ForeignReset, Culprit::Network, headline);
        verdict.chain = why;
        return Some(verdict.unknown("the device that sent the RSTs, for example a firewall"));
    }
    if let Some(why) = foreign(track, by, &rst) {
        let headline = format!("a device in the network reset the connection in the name of {own}");
        let text = format!("a RST with the address of {own} ends the connection ({why})");
        let link = Link { direction: None, text, ..link };
        let verdict = Verdict::new(Cause::ForeignReset, Culprit::Network, headline).then(link);
        return Some(verdict.unknown("the device that sent the RST, for example a firewall"));
    }
    if let Some(verdict) = aborted(track, rst.at.frame) {
        return Some(verdict.then(link.therefore()));
    }
    if let Some(verdict) = unreachable(track, by).or_else(|| closed_window(track, by, rst.at)) {
        return Some(verdict.then(link.therefore()));
    }
    let probes = track.transport.sides[by].unanswered;
    if probes.count >= PROBES {
        return Some(silent(track, by, &probes).then(link.therefore()));
    }
    if let Some(verdict) = violation(track, by, rst.at).or_else(|| no_response(track, by, rst.at)) {
        return Some(verdict.then(link.therefore()));
    }
    if let Some(verdict) = lost_state(track, by, &rst) {
        return Some(verdict);
    }
    if rst.peer_probes >= PROBES {
        let headline = format!("{own} answers {} of {peer} with a RST", counted(rst.peer_probes, "probe"));
        let verdict = Verdict::new(Cause::Reset, Culprit::NotInCapture, headline).then(link);
        return Some(verdict.unknown(format!("why {own} does not know the connection, for example a restart")));
    }
    let is_recent =
        |read: &CapturePoint| !track.lacks_octets() && rst.at.time.saturating_sub(read.time) < MIN_RESPONSE_TIME;
    if let Some((read, count)) = track.reads[by].oldest().filter(|(read, _)| is_recent(read)) {
        let (what, text) = match count {
            1 => ("a Read Request of its own was".to_owned(), format!("{own} sends a Read Request")),
            count => {
                let text = format!("{own} sends the first of {count} Read Requests without a complete response");
                (format!("{count} of its Read Requests were"), text)
            }
        };
        let headline = format!("{own} reset the connection while {what} outstanding");
        let verdict = Verdict::new(Cause::Reset, by.into(), headline);
        let verdict = verdict.then(Link::new(by, Some(read.frame), text)).then(link);
        return Some(verdict.unknown(format!("why {own} did so, for example the end of its process")));
    }
    let headline = match track.transport.sides[by.peer()].fin.filter(|fin| fin.frame < rst.at.frame) {
        Some(fin) => format!("{own} reset the connection after {peer} had closed it (frame {})", fin.frame),
        None => format!("{own} reset the connection"),
    };
    let verdict = Verdict::new(Cause::Reset, Culprit::NotInCapture, headline).then(link);
    Some(verdict.unknown(format!("why {own} reset the connection")))
}

/// Explains a FIN of the endpoint that sends in `by`. Returns `None` if nothing but the FIN is
/// known.
pub(super) fn closed(track: &Track, by: Direction, at: CapturePoint) -> Option<Verdict> {
    let own = track.end(by);
    let link = || Link::new(by, Some(at.frame), format!("{own} closes the connection"));
    if let Some(verdict) = aborted(track, at.frame).or_else(|| violation(track, by, at)) {
        return Some(verdict.then(link().therefore()));
    }
    if let Some(verdict) = no_response(track, by, at) {
        return Some(verdict.then(link()));
    }
    if !track.is_complete() {
        return None;
    }
    let request = track.startup.request().filter(|_| track.startup.reply().is_none())?;
    let initiator = Direction::from(request.direction);
    let (from, to) = (track.end(initiator), track.end(initiator.peer()));
    let headline = format!("{to} did not answer the MPA Request of {from}");
    let text = format!("{from} sends a Request of revision {}", request.revision);
    let verdict = Verdict::new(Cause::Startup, Culprit::NotInCapture, headline);
    let verdict = verdict.then(Link::new(initiator, Some(request.frame), text)).then(link());
    Some(verdict.unknown(format!("why {to} sent no Reply")))
}

/// Explains a RST of a TCP that does not know the connection: after a long pause, it answers a
/// segment of the peer with a RST without ACK. The endpoint sent no FIN before.
fn lost_state(track: &Track, by: Direction, rst: &Reset) -> Option<Verdict> {
    let (own, peer, side) = (track.end(by), track.end(by.peer()), &track.transport.sides[by]);
    let is_own = rst.hops.is_some_and(|(reset, usual)| reset == usual) && !rst.has_other_ttl;
    let is_open = side.fin.is_none_or(|fin| fin.frame > rst.at.frame);
    let (request, pause) = track.transport.recent.answered_after_pause(by, rst.at.frame)?;
    if rst.has_ack || !is_own || !is_open {
        return None;
    }
    let seconds = pause as f64 / 1e9;
    let headline = format!("{own} no longer knew the connection after a pause of {seconds:.0} s");
    let verdict = Verdict::new(Cause::LostState, by.into(), headline);
    let text = format!("{peer} sends a segment after the pause");
    let verdict = verdict.then(Link::new(by.peer(), Some(request), text));
    let text = format!("{own} answers with a RST without ACK, as a TCP does that has no such connection");
    let verdict = verdict.then(Link::new(by, Some(rst.at.frame), text).therefore());
    let what = "its host restarted, or a firewall on it dropped the state";
    Some(verdict.unknown(format!("why {own} lost the connection: {what}")))
}

/// The two RSTs, if another device sent them with the addresses of both endpoints. No TCP answers a
/// RST with a RST.
fn in_both_names(track: &Track) -> Option<Vec<Link>> {
    let mut resets = Vec::new();
    for direction in Direction::BOTH {
        resets.push((direction, track.transport.sides[direction].rst.filter(|rst| rst.has_other_ttl)?));
    }
    resets.sort_by_key(|(_, rst)| rst.at.frame);
    let distance = resets[1].1.at.time.saturating_sub(resets[0].1.at.time);
    let link = |(direction, rst): &(Direction, Reset)| {
        let end = track.end(*direction);
        let text = format!("a RST with the address of {end} has another TTL than all its earlier segments");
        Link { direction: None, ..Link::new(*direction, Some(rst.at.frame), text) }
    };
    (distance <= MAX_DISTANCE).then(|| resets.iter().map(link).collect())
}

/// The evidence that another device sent a RST.
fn foreign(track: &Track, by: Direction, rst: &Reset) -> Option<String> {
    if let Some((reset, usual)) = rst.hops.filter(|(reset, usual)| reset != usual) {
        let (reset, usual) = (counted(reset.into(), "router"), counted(usual.into(), "router"));
        return Some(format!("it passed {reset}, all earlier segments passed {usual}"));
    }
    if rst.segments_after >= SEGMENTS_AFTER {
        let after = counted(rst.segments_after, "segment");
        return Some(format!("{} sent {after} of the same connection after it", track.end(by)));
    }
    None
}

/// Explains an end by an AbortConn of SDP.
fn aborted(track: &Track, end: FrameNumber) -> Option<Verdict> {
    let sdp = track.sdp.as_ref()?;
    let aborts = Direction::BOTH.into_iter().filter_map(|by| Some((by, sdp.closing.abort_conn[by]?)));
    let (by, frame) = aborts.filter(|(_, frame)| *frame <= end).min_by_key(|(_, frame)| *frame)?;
    let own = track.end(by);
    let link = Link::new(by, Some(frame), format!("{own} sends AbortConn"));
    let is_reason = |problem: &Problem| problem.is_fatal || problem.kind == ProblemKind::Sdp;
    let errors = track.problems.errors_of(by.peer()).filter(|(_, problem)| is_reason(problem));
    let mut direct = errors.filter(|(_, problem)| track.transport.recent.ends_directly(by, problem.first(), frame));
    if let Some((index, problem)) = direct.next() {
        return Some(Verdict::of(index, problem, track).then(link.therefore()));
    }
    let headline = format!("{own} aborted the SDP connection");
    let verdict = Verdict::new(Cause::Aborted, by.into(), headline).then(link);
    Some(verdict.unknown(format!("why the program of {own} aborted")))
}

/// Explains an end by a violation of the peer, if the endpoint that sends in `by` ended the
/// connection directly after the first frame with this violation.
fn violation(track: &Track, by: Direction, at: CapturePoint) -> Option<Verdict> {
    let has_same =
        |problem: &Problem| track.problems.errors_of(by).any(|(_, own)| own.requirement == problem.requirement);
    let errors = track.problems.errors_of(by.peer()).filter(|(_, problem)| is_reason(track, by, problem));
    // Two endpoints with the same error probably tolerate it.
    let errors = errors.filter(|(_, problem)| !has_same(problem));
    let recent = &track.transport.recent;
    let mut direct = errors.filter(|(_, problem)| recent.ends_directly(by, problem.first(), at.frame));
    let (index, problem) = direct.next()?;
    let is_repaired = |bad: &&BadCrc| bad.direction == by.peer() && problem.is_in(bad.frame) && bad.repaired.is_some();
    let repaired = track.bad_crcs.iter().find(is_repaired).filter(|_| problem.kind == ProblemKind::Crc);
    Some(repaired.map_or_else(|| Verdict::of(index, problem, track), |bad| damaged(track, bad)))
}

/// Returns whether the endpoint that sends in `by` ends a connection because of this problem of its
/// peer: every receiver must do so, or the problem is in the start-up and the endpoint then sent no
/// message.
fn is_reason(track: &Track, by: Direction, problem: &Problem) -> bool {
    let is_startup = || problem.requirements.iter().any(|id| is_fatal_in_startup(*id));
    problem.is_fatal || track.carried[by].other.fpdus == 0 && is_startup()
}

/// Adds the next FIN or RST after the chain.
pub(super) fn with_end(track: &Track, verdict: Verdict) -> Verdict {
    let last = verdict.chain.iter().filter_map(|link| link.frame).max();
    match last.and_then(|last| end_link(track, last)) {
        Some(link) => verdict.then(link),
        None => verdict,
    }
}
