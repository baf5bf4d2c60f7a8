//! Explains why an endpoint no longer gets an answer: its segments do not reach the peer, the peer
//! keeps its receive window closed, or the peer does not answer a request.

use crate::direction::Direction;
use crate::exchange::CapturePoint;
use crate::format::counted;

use super::stall::Failure;
use super::track::Track;
use super::transport::Probes;
use super::verdict::{Cause, Culprit, Link, Verdict};

/// If an endpoint waits for a response at least this long, in nanoseconds, and then ends the
/// connection, the missing response is the cause.
const MAX_RESPONSE_TIME: u64 = 5_000_000_000;
/// The same for a closed window, in nanoseconds.
const MAX_CLOSED_WINDOW: u64 = 10_000_000_000;

/// Explains a connection that does not end in the capture, but that an endpoint or the network
/// blocks. Returns `None` if nothing blocks it.
pub(super) fn blocked(track: &Track) -> Option<Verdict> {
    if track.transport.is_one_sided() {
        return None;
    }
    let of = |by: Direction| {
        let blocked = unreachable(track, by).or_else(|| closed_window(track, by, track.last));
        blocked.or_else(|| no_response(track, by, track.last))
    };
    Direction::BOTH.into_iter().find_map(of)
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
    let oldest = track.transport.sides[from].stall.oldest();
    let headline = format!("{peer} no longer answered: {what} of {own} got no answer");
    let mut verdict = Verdict::new(Cause::Silence, Culprit::NotInCapture, headline);
    if let Some(last) = track.transport.sides[from.peer()].last {
        let text = format!("{peer} sends its last segment in this capture");
        verdict = verdict.then(Link::new(from.peer(), Some(last.frame), text));
    }
    if let Some(oldest) = oldest {
        let text = format!("{own} sends a segment that {peer} does not acknowledge");
        verdict = verdict.then(Link::new(from, Some(oldest), text));
    }
    if let Some((first, last)) = probes.first.zip(probes.last) {
        let seconds = last.time.saturating_sub(first.time) as f64 / 1e9;
        let text = format!("{own} sends {what} in {seconds:.3} s without an answer");
        verdict = verdict.then(Link::new(from, Some(first.frame), text));
    }
    verdict.unknown(format!("whether {peer} or the path to it failed"))
}

/// Explains that the peer of `by` did not answer a Read Request or an MPA Request of `by` until
/// `at`, although its TCP acknowledged the request.
pub(super) fn no_response(track: &Track, by: Direction, at: CapturePoint) -> Option<Verdict> {
    let (own, peer) = (track.end(by), track.end(by.peer()));
    let is_long = |since: u64| at.time.saturating_sub(since) >= MAX_RESPONSE_TIME;
    if track.lacks_octets() || !track.transport.sides[by].is_all_acked() {
        return None;
    }
    let read = track.reads[by].oldest().filter(|(read, _)| is_long(read.time));
    let request = track.startup.request().filter(|it| track.startup.reply().is_none() && it.direction == u8::from(by));
    let request = request.zip(track.request_time.filter(|time| is_long(*time)));
    let (article, name, frame, since) = match (read, request) {
        (Some((read, _)), _) => ("a", "Read Request", read.frame, read.time),
        (None, Some((request, time))) => ("the", "MPA Request", request.frame, time),
        (None, None) => return None,
    };
    let seconds = at.time.saturating_sub(since) as f64 / 1e9;
    let headline = format!("{peer} did not answer {article} {name} of {own} for {seconds:.0} s");
    let verdict = Verdict::new(Cause::NoResponse, by.peer().into(), headline);
    let verdict = verdict.then(Link::new(by, Some(frame), format!("{own} sends the {name}")));
    let last = track.transport.recent.last_before(by.peer(), at.frame).filter(|last| *last > frame);
    let verdict = match last {
        Some(last) => {
            let text = format!("the TCP of {peer}, which acknowledged it, still answers");
            verdict.then(Link::new(by.peer(), Some(last), text))
        }
        None => verdict,
    };
    Some(verdict.unknown(format!("why {peer} did not answer")))
}

/// Explains that the segments of `from` do not reach the peer, although the peer still sends.
pub(super) fn unreachable(track: &Track, from: Direction) -> Option<Verdict> {
    let (own, peer) = (track.end(from), track.end(from.peer()));
    let stall = &track.transport.sides[from].stall;
    let retransmissions = counted(stall.retransmissions, "retransmission");
    let first = stall.first.map(|first| first.frame);
    let sent = Link::new(from, first, format!("{own} sends {retransmissions} of the same bytes"));
    let failure = stall.failure()?;
    let text = format!("{own} sends a segment that {peer} does not acknowledge");
    let lost = Link::new(from, stall.oldest(), text);
    let verdict = match failure {
        Failure::Long(len) => {
            let headline = format!("the network drops the long segments of {own}; {peer} receives the short ones");
            let text = format!("{own} sends {retransmissions} with {len} bytes of payload");
            let got = format!("{peer} acknowledges only shorter segments (SACK)");
            let verdict = Verdict::new(Cause::MtuBlackHole, Culprit::Network, headline);
            let verdict = verdict.then(lost).then(Link { text, ..sent }).then(Link::new(from.peer(), None, got));
            verdict.unknown("the device with the smaller MTU: no ICMP message reports it")
        }
        Failure::All => {
            let headline = format!(
                "the path lost all further segments of {own}: {peer} still sent its own, but acknowledged none"
            );
            let got = format!("{peer} sends {} and acknowledges none of them", counted(stall.answers, "segment"));
            let verdict = Verdict::new(Cause::PathLoss, Culprit::Network, headline);
            let last = stall.last_answer.map(|last| last.frame);
            let verdict = verdict.then(lost).then(sent).then(Link::new(from.peer(), last, got));
            verdict.unknown("where on the path the segments are lost")
        }
    };
    Some(verdict)
}

/// Explains that the peer of `by` kept its receive window closed until `at`.
pub(super) fn closed_window(track: &Track, by: Direction, at: CapturePoint) -> Option<Verdict> {
    let (own, peer, side) = (track.end(by), track.end(by.peer()), &track.transport.sides[by.peer()]);
    let since = side.zero_since?;
    let nanoseconds = at.time.saturating_sub(since);
    let frame = side.zero_frame.filter(|_| nanoseconds >= MAX_CLOSED_WINDOW)?;
    let seconds = nanoseconds as f64 / 1e9;
    let headline = format!("{peer} did not take data for {seconds:.0} s: its TCP window stayed closed");
    let verdict = Verdict::new(Cause::ClosedWindow, by.peer().into(), headline);
    let verdict = verdict.then(Link::new(by.peer(), Some(frame), format!("{peer} closes its receive window")));
    let probes = counted(track.transport.sides[by].keep_alives, "window probe");
    let text = format!("{peer} answers {probes} of {own} with a closed window");
    let last = track.transport.recent.last_before(by.peer(), at.frame).filter(|last| *last > frame);
    let verdict = match last {
        Some(last) => verdict.then(Link::new(by.peer(), Some(last), text)),
        None => verdict,
    };
    Some(verdict.advice(peer, "find out why the MPA layer does not read from TCP"))
}
