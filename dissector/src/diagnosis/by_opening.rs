//! Explains a connection that was not opened: no answer to the SYN, a RST in answer to the SYN, or
//! a rejection by MPA.

use weft_core::requirement::Severity;

use crate::direction::Direction;
use crate::format::counted;

use super::by_terminate::end_link;
use super::ending::Ending;
use super::startup::StartupReport;
use super::track::Track;
use super::verdict::{Cause, Culprit, Link, Verdict};

/// Explains a SYN without an answer.
pub(super) fn unanswered(track: &Track) -> Verdict {
    let side = &track.transport.sides[Direction::Forward];
    let (own, peer) = (track.end(Direction::Forward), track.end(Direction::Reverse));
    let headline = format!("{peer} did not answer {} of {own}", counted(side.syns, "SYN"));
    let text = format!("{own} sends {}", counted(side.syns, "SYN"));
    let frame = side.syn.map(|syn| syn.frame);
    let verdict = Verdict::new(Cause::NoAnswer, Culprit::NotInCapture, headline);
    let verdict = verdict.then(Link::new(Direction::Forward, frame, text));
    verdict.unknown("an answer: the host does not exist, a filter drops segments, or the capture lacks this direction")
}

/// Explains a RST in answer to a SYN.
pub(super) fn refused(track: &Track, ending: &Ending) -> Verdict {
    let (own, peer) = (track.end(Direction::Reverse), track.end(Direction::Forward));
    let headline = format!("{own} refused the TCP connection of {peer}");
    let syn = track.transport.sides[Direction::Forward].syn.map(|syn| syn.frame);
    let verdict = Verdict::new(Cause::Refused, Culprit::NotInCapture, headline);
    let verdict = verdict.then(Link::new(Direction::Forward, syn, format!("{peer} sends a SYN")));
    let verdict = verdict.then(Link::new(Direction::Reverse, ending.frame, format!("{own} answers with a RST")));
    verdict.unknown("the reason: usually, no program listens on this port, or a firewall rejects the connection")
}

/// Explains an MPA Reply that rejects the connection. A violation in the Request is not necessarily
/// the reason, so the endpoint that rejects is the endpoint that ended the connection.
pub(super) fn rejected(track: &Track) -> Verdict {
    let reply = track.startup.reply();
    let by = reply.map_or(Direction::Reverse, |reply| Direction::from(reply.direction));
    let (own, peer) = (track.end(by), track.end(by.peer()));
    let frame = reply.map(|reply| reply.frame);
    let headline = format!("{own} rejected the connection of {peer}");
    let mut verdict = Verdict::new(Cause::Rejected, by.into(), headline);
    let request = track.startup.request();
    if let Some(request) = request {
        let crc = if request.crc { "with CRC" } else { "without CRC" };
        let text = format!("{peer} sends a Request of revision {} {crc}", request.revision);
        verdict = verdict.then(Link::new(by.peer(), Some(request.frame), text));
    }
    verdict = verdict.then(Link::new(by, frame, format!("{own} rejects the connection in its MPA Reply")));
    if let Some(link) = frame.and_then(|frame| end_link(track, frame)) {
        verdict = verdict.then(link.therefore());
    }
    let requires_crc = request.is_some_and(|request| request.crc);
    let is_without_crc = reply.is_some_and(|reply| !reply.crc);
    match reply.map_or(0, StartupReport::private_len) {
        0 if requires_crc && is_without_crc => {
            verdict.unknown("the reason; the Request requires CRC, and the Reply does not")
        }
        0 => verdict.unknown("the reason: the Reply has no private data"),
        len => {
            let len = counted(len.into(), "byte");
            verdict.unknown(format!("the reason; perhaps the {len} of private data in the Reply contain it"))
        }
    }
}

/// The result for a connection that ended normally, or that is still open.
pub(super) fn ordinary(track: &Track, is_open: bool) -> Verdict {
    let [first, other] = [Direction::Forward, Direction::Reverse].map(|direction| worst(track, direction));
    let culprit = match (first, other) {
        (None, None) => return without_violations(track, is_open),
        (Some(first), Some(other)) if first == other => Culprit::Both,
        (first, other) if first > other => Culprit::First,
        _ => Culprit::Second,
    };
    let worst = first.max(other);
    if worst < Some(Severity::Error) {
        let who = match culprit {
            Culprit::First => track.end(Direction::Forward),
            Culprit::Second => track.end(Direction::Reverse),
            _ => "each endpoint",
        };
        let headline = format!("no error, but {who} does not follow recommendations");
        return Verdict::new(Cause::Violations, Culprit::Nobody, headline);
    }
    let who = match culprit {
        Culprit::First => track.end(Direction::Forward),
        Culprit::Second => track.end(Direction::Reverse),
        _ => "each endpoint",
    };
    let ended = if is_open { "the connection continues" } else { "the connection ended normally" };
    let headline = format!("{who} violates requirements, but {ended}");
    Verdict::new(Cause::Violations, culprit, headline)
}

/// The highest severity of the problems of an endpoint, if it is at least a warning.
fn worst(track: &Track, direction: Direction) -> Option<Severity> {
    let number = u8::from(direction);
    let own = track.problems.list.iter().filter(|problem| problem.direction == number);
    own.map(|problem| problem.severity).max().filter(|severity| *severity > Severity::Note)
}

fn without_violations(track: &Track, is_open: bool) -> Verdict {
    let sides = &track.transport.sides;
    if track.transport.is_one_sided() {
        let own = track.end(Direction::Forward);
        let is_orderly = sides[Direction::Forward].fin.is_some();
        let (culprit, found) =
            if is_orderly { (Culprit::Nobody, "no problem, but ") } else { (Culprit::NotInCapture, "") };
        let headline = format!("{found}the capture has only the segments of {own}");
        let verdict = Verdict::new(Cause::OneDirection, culprit, headline);
        return verdict.unknown(format!("everything that {} sent", track.end(Direction::Reverse)));
    }
    let retransmissions = sides[0].retransmissions + sides[1].retransmissions;
    let refills = sides[0].refills + sides[1].refills;
    let damaged = track.carried.iter().map(|counters| counters.other.damaged).sum::<u64>();
    if retransmissions + damaged > 0 {
        let is_lost = refills + damaged > 0;
        let culprit = if is_lost { Culprit::Network } else { Culprit::Nobody };
        let what = counted(retransmissions, "retransmission");
        let headline = match damaged {
            0 => format!("no violation, but TCP needed {what}"),
            damaged => format!("no violation, but the network damaged {} ({what})", counted(damaged, "segment")),
        };
        let verdict = Verdict::new(Cause::Loss, culprit, headline);
        return if is_lost { verdict } else { verdict.unknown("whether segments were lost, damaged, or only late") };
    }
    let headline = if is_open { "no problem; the capture ends before the connection" } else { "no problem" };
    Verdict::new(Cause::None, Culprit::Nobody, headline.to_owned())
}
