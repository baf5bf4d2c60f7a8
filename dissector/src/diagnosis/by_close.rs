//! Explains the end of a connection by a FIN, by a RST, or by silence.

use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::format::counted;
use crate::frame_number::FrameNumber;

use super::by_terminate::end_link;
use super::problem_kind::ProblemKind;
use super::problems::Problem;
use super::track::Track;
use super::transport::{Probes, Reset};
use super::verdict::{Cause, Culprit, Link, Verdict};

/// Minimum number of probes without an answer that explain a RST of their sender.
const PROBES: u64 = 2;
/// Minimum number of segments of an endpoint after its own RST. They show that the endpoint did not
/// send the RST.
const SEGMENTS_AFTER: u64 = 2;

/// Explains a RST of the endpoint that sends in `by`.
pub(super) fn reset(track: &Track, by: Direction) -> Option<Verdict> {
    let rst = track.transport.sides[by].rst?;
    let (own, peer) = (track.end(by), track.end(by.peer()));
    let link = Link::new(by, Some(rst.at.frame), format!("{own} resets the connection"));
    if let Some(why) = foreign(track, by, &rst) {
        let headline = format!("a RST ended the connection; it does not look like it came from {own}");
        let text = format!("a RST with the address of {own} ends the connection ({why})");
        let link = Link { direction: None, text, ..link };
        let verdict = Verdict::new(Cause::ForeignReset, Culprit::Network, headline).then(link);
        return Some(verdict.unknown("the device that sent the RST, for example a firewall"));
    }
    if let Some(verdict) = aborted(track, rst.at.frame) {
        return Some(verdict.then(link.therefore()));
    }
    let probes = track.transport.sides[by].unanswered;
    if probes.count >= PROBES {
        return Some(silent(track, by, &probes).then(link.therefore()));
    }
    if let Some(verdict) = violation(track, by, rst.at) {
        return Some(verdict.then(link.therefore()));
    }
    if rst.peer_probes >= PROBES {
        let headline = format!("{own} answers {} of {peer} with a RST", counted(rst.peer_probes, "probe"));
        let verdict = Verdict::new(Cause::Reset, Culprit::NotInCapture, headline).then(link);
        return Some(verdict.unknown(format!("why {own} does not know the connection, for example a restart")));
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
    if !track.is_complete() {
        return None;
    }
    let request = track.startup.request()?;
    if track.startup.reply().is_some() {
        return None;
    }
    let initiator = Direction::from(request.direction);
    let (from, to) = (track.end(initiator), track.end(initiator.peer()));
    let headline = format!("{to} did not answer the MPA Request of {from}");
    let text = format!("{from} sends a Request of revision {}", request.revision);
    let verdict = Verdict::new(Cause::Startup, Culprit::NotInCapture, headline);
    let verdict = verdict.then(Link::new(initiator, Some(request.frame), text)).then(link());
    Some(verdict.unknown(format!("why {to} sent no Reply")))
}

/// Explains that the peer of `from` no longer answers.
pub(super) fn silent(track: &Track, from: Direction, probes: &Probes) -> Verdict {
    let (own, peer) = (track.end(from), track.end(from.peer()));
    let keep_alives = probes.keep_alives;
    let what = match (keep_alives, probes.count - keep_alives.min(probes.count)) {
        (0, others) => counted(others, "retransmission"),
        (keep_alives, 0) => counted(keep_alives, "keep-alive"),
        (keep_alives, others) => {
            format!("{} and {}", counted(keep_alives, "keep-alive"), counted(others, "retransmission"))
        }
    };
    let headline = format!("{peer} no longer answered: {what} of {own} got no answer");
    let mut verdict = Verdict::new(Cause::Silence, Culprit::NotInCapture, headline);
    if let Some(last) = track.transport.sides[from.peer()].last {
        let text = format!("{peer} sends its last segment in this capture");
        verdict = verdict.then(Link::new(from.peer(), Some(last.frame), text));
    }
    if let Some((first, last)) = probes.first.zip(probes.last) {
        let seconds = last.time.saturating_sub(first.time) as f64 / 1e9;
        let text = format!("{own} sends {what} in {seconds:.3} s without an answer");
        verdict = verdict.then(Link::new(from, Some(first.frame), text));
    }
    verdict.unknown(format!("whether {peer} or the path to it failed"))
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
    let errors = track.problems.errors_of(by.peer()).filter(|(_, problem)| problem.is_fatal);
    let recent = &track.transport.recent;
    let mut direct = errors.filter(|(_, problem)| recent.ends_directly(by, problem.first(), at.frame));
    let (index, problem) = direct.next()?;
    Some(Verdict::of(index, problem, track))
}

/// Adds the next FIN or RST after the chain.
pub(super) fn with_end(track: &Track, verdict: Verdict) -> Verdict {
    let last = verdict.chain.iter().filter_map(|link| link.frame).max();
    match last.and_then(|last| end_link(track, last)) {
        Some(link) => verdict.then(link),
        None => verdict,
    }
}
