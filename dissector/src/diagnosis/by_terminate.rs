//! Explains the end of a connection by a Terminate.

use weft_core::RequirementId;
use weft_core::wire::ddp::queue;
use weft_core::wire::rdmap::{ErrorLayer, TerminateError};

use crate::direction::Direction;
use crate::format::counted;
use crate::frame_number::FrameNumber;

use super::by_access;
use super::ending::{EndEvent, next_event};
use super::problem_kind::{ProblemKind, SDP_NO_CREDIT, SDP_TOO_LONG, UNJUSTIFIED_TERMINATE};
use super::problems::Problem;
use super::terminate::TerminateReport;
use super::track::{BadCrc, Track};
use super::verdict::{Cause, Culprit, Link, Verdict};

/// Explains the Terminate that `owner` sent.
pub(super) fn explain(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let own = track.end(owner);
    let other = terminate.with_other_error().filter(|_| is_local(terminate.error));
    let other = other.filter(|other| direct_problem(track, owner, other).is_some());
    let terminate = other.as_ref().unwrap_or(terminate);
    let error = terminate.error;
    let layout = terminate.layout().map_or_else(String::new, |layout| format!("; {layout}"));
    let text = format!("{own} sends a Terminate: {} {}, {}{layout}", error.layer, error.type_name(), error.name());
    let link = Link::new(owner, Some(terminate.frame), text);
    let verdict = root(track, owner, terminate).then(link.therefore());
    match end_link(track, terminate.frame) {
        Some(link) => verdict.then(link.therefore()),
        None => verdict,
    }
}

/// The FIN or RST after frame `after`.
pub(super) fn end_link(track: &Track, after: FrameNumber) -> Option<Link> {
    let (event, direction, frame) = next_event(track, after)?;
    let end = track.end(direction);
    let text = match event {
        EndEvent::Fin => format!("{end} closes the connection"),
        EndEvent::Reset => format!("{end} resets the connection"),
        EndEvent::Terminate => format!("{end} sends a Terminate, too"),
    };
    Some(Link::new(direction, Some(frame), text))
}

/// Finds the reason for a Terminate.
fn root(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let (own, peer) = (track.end(owner), track.end(owner.peer()));
    let is_unjustified = |id: &RequirementId| UNJUSTIFIED_TERMINATE.contains(id);
    let own_errors = || track.problems.errors_of(owner).filter(|(_, problem)| problem.is_in(terminate.frame));
    // Without all earlier bytes, a reason for the Terminate can be missing.
    let unjustified = own_errors().find(|(_, problem)| problem.requirements.iter().any(is_unjustified));
    if let Some((index, problem)) = unjustified.filter(|_| track.is_complete()) {
        let headline = format!("{own} rejects a message of {peer} that it must accept");
        let verdict = Verdict::with_headline(index, problem, track, headline);
        return Verdict { cause: Cause::Terminate, ..verdict };
    }
    let access = by_access::explain(track, owner, terminate);
    let is_certain = access.as_ref().is_some_and(|verdict| verdict.culprit != Culprit::NotInCapture);
    let target = terminate.target.and_then(|frame| track.problems.error_in(owner.peer(), frame));
    let fitting = target.filter(|(_, problem)| !is_certain && fits(terminate, problem.kind));
    match (access, fitting) {
        (_, Some((index, problem))) => Verdict::of(index, problem, track),
        (Some(verdict), None) => verdict,
        (None, None) => by_error(track, owner, terminate),
    }
}

/// Finds the reason for a Terminate whose error is not about an access to memory, and whose
/// reported message has no finding.
fn by_error(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let (own, error) = (track.end(owner), terminate.error);
    match error {
        TerminateError::DDP_UNTAGGED_NO_BUFFER | TerminateError::DDP_UNTAGGED_MSN_RANGE
            if terminate.queue() == Some(queue::READ_REQUEST) =>
        {
            read_depth(track, owner, terminate)
        }
        TerminateError::DDP_UNTAGGED_NO_BUFFER => no_buffer(track, owner, terminate),
        TerminateError::DDP_UNTAGGED_TOO_LONG => too_long(track, owner, terminate),
        TerminateError::MPA_CRC => crc(track, owner, terminate),
        TerminateError::MPA_INSUFFICIENT_IRD => insufficient_ird(track, owner),
        _ if is_local(error) => {
            let headline = format!("{own} reports an error of its own ({})", error.name());
            let verdict = Verdict::new(Cause::LocalError, owner.into(), headline);
            verdict.unknown(format!("the reason for the error inside {own}"))
        }
        _ => by_kind(track, owner, terminate),
    }
}

/// Returns whether the sender of a Terminate with this error has a problem of its own.
fn is_local(error: TerminateError) -> bool {
    let is_catastrophic = matches!(error.layer, ErrorLayer::RDMAP | ErrorLayer::DDP) && error.error_type == 0;
    is_catastrophic || error == TerminateError::MPA_LOCAL_CATASTROPHIC
}

/// Returns whether a problem of this kind explains the Terminate.
fn fits(terminate: &TerminateReport, kind: ProblemKind) -> bool {
    let error = terminate.error;
    match (error.layer, error.error_type) {
        (ErrorLayer::LLP, _) => match error {
            TerminateError::MPA_CRC => kind == ProblemKind::Crc,
            TerminateError::MPA_MARKER => matches!(kind, ProblemKind::Markers | ProblemKind::Framing),
            _ => matches!(kind, ProblemKind::Startup | ProblemKind::Key),
        },
        (ErrorLayer::DDP, 1) if error == TerminateError::DDP_TAGGED_INVALID_VERSION => kind == ProblemKind::Message,
        (ErrorLayer::DDP | ErrorLayer::RDMAP, 1) => kind == ProblemKind::Sdp,
        (ErrorLayer::DDP, 2) if terminate.queue() == Some(queue::READ_REQUEST) => {
            matches!(kind, ProblemKind::Message | ProblemKind::ReadDepth)
        }
        (ErrorLayer::DDP, 2) => !is_about_buffer(error) && kind == ProblemKind::Message,
        (ErrorLayer::RDMAP, 2) => kind == ProblemKind::Message,
        _ => false,
    }
}

/// The problem of the peer that fits the Terminate, if `owner` sent the Terminate directly after
/// it.
fn direct_problem<'t>(track: &'t Track, owner: Direction, terminate: &TerminateReport) -> Option<(usize, &'t Problem)> {
    let is_direct = |problem: &Problem| track.transport.recent.ends_directly(owner, problem.first(), terminate.frame);
    let mut errors = track.problems.errors_of(owner.peer());
    errors.find(|(_, problem)| fits(terminate, problem.kind) && is_direct(problem))
}

/// Returns whether the error is about the receive buffers of the Terminate's sender.
fn is_about_buffer(error: TerminateError) -> bool {
    [TerminateError::DDP_UNTAGGED_NO_BUFFER, TerminateError::DDP_UNTAGGED_TOO_LONG].contains(&error)
}

/// Explains a Terminate about a Read Request for which the queue has no room.
fn read_depth(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let (own, peer) = (track.end(owner), track.end(owner.peer()));
    let mut errors = track.problems.errors_of(owner.peer());
    if let Some((index, problem)) = errors.find(|(_, problem)| problem.kind == ProblemKind::ReadDepth) {
        return Verdict::of(index, problem, track);
    }
    if let Some((index, problem)) = direct_problem(track, owner, terminate) {
        return Verdict::of(index, problem, track);
    }
    let headline = format!("{own} has no room for a Read Request of {peer}");
    let verdict = Verdict::new(Cause::ReadDepth, Culprit::NotInCapture, headline);
    match track.startup.read_limit(owner.peer()) {
        Some(limit) => verdict.unknown(format!("more than {limit} outstanding Read Requests (the IRD of {own})")),
        None => verdict.unknown(format!("the IRD of {own}: the start-up frames do not negotiate it")),
    }
}

fn no_buffer(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let (own, peer) = (track.end(owner), track.end(owner.peer()));
    let headline = format!("{own} had no receive buffer for a Send of {peer}");
    if let Some((index, problem)) = sdp_problem(track, owner.peer(), terminate, SDP_NO_CREDIT) {
        let verdict = Verdict::with_headline(index, problem, track, headline);
        return Verdict { cause: Cause::NoReceiveBuffer, ..verdict };
    }
    let verdict = Verdict::new(Cause::NoReceiveBuffer, Culprit::NotInCapture, headline);
    let verdict = verdict.then(send_link(track, owner.peer(), terminate));
    verdict.unknown(format!("whether {peer} sent more Sends than agreed, or {own} posted too few receive buffers"))
}

fn too_long(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let (own, peer) = (track.end(owner), track.end(owner.peer()));
    let sent = terminate.target.and_then(|frame| track.accesses[owner.peer()].send_in(frame));
    let sent_len = sent.map(|send| send.len);
    let len = sent_len.map_or_else(String::new, |len| format!(" of {}", counted(len, "byte")));
    let headline = format!("a Send{len} of {peer} is longer than the receive buffer of {own}");
    if let Some((index, problem)) = sdp_problem(track, owner.peer(), terminate, SDP_TOO_LONG) {
        let verdict = Verdict::with_headline(index, problem, track, headline);
        let verdict = verdict.advice(peer, "an SDP message must fit the receive Private Buffers of the peer");
        return Verdict { cause: Cause::TooLong, ..verdict };
    }
    let link = send_link(track, owner.peer(), terminate);
    if let Some(((max, frame), sent)) = track.max_receive[owner].zip(sent_len) {
        return announced(track, owner, (max, frame), sent, link);
    }
    let verdict = Verdict::new(Cause::TooLong, Culprit::NotInCapture, headline);
    let verdict = verdict.then(link);
    let before = terminate.target.unwrap_or(terminate.frame);
    let longest = track.accesses[owner.peer()].longest_send_before(before);
    let accepted = longest.map_or_else(String::new, |len| format!("; the longest Send before it had {len} bytes"));
    verdict.unknown(format!("the agreed length, and so the endpoint with the wrong length{accepted}"))
}

/// Explains a Send of `sent` octets that is too long for an endpoint that announced in frame
/// `frame` to accept `max` octets.
fn announced(track: &Track, owner: Direction, (max, frame): (u32, FrameNumber), sent: u64, link: Link) -> Verdict {
    let (own, peer) = (track.end(owner), track.end(owner.peer()));
    let (is_longer, max, sent) = (sent > u64::from(max), counted(max.into(), "byte"), counted(sent, "byte"));
    let limit = Link::new(owner, Some(frame), format!("{own} announces that it accepts Sends of at most {max}"));
    let (culprit, headline, advice) = if is_longer {
        let headline = format!("{peer} sent a Send of {sent}, but {own} accepts at most {max}");
        (peer, headline, format!("a Send must not be longer than the {max} that the peer announced (frame {frame})"))
    } else {
        let headline = format!("{own} rejects a Send of {sent}, although it announced to accept {max}");
        (own, headline, format!("post receive buffers of the {max} that frame {frame} announces"))
    };
    let direction = if is_longer { owner.peer() } else { owner };
    Verdict::new(Cause::TooLong, direction.into(), headline).then(limit).then(link).advice(culprit, &advice)
}

/// The problem of the reported SDP message, if it violates one of `ids`.
fn sdp_problem<'t>(
    track: &'t Track,
    sender: Direction,
    terminate: &TerminateReport,
    ids: &[RequirementId],
) -> Option<(usize, &'t Problem)> {
    let (index, problem) = terminate.target.and_then(|frame| track.problems.error_in(sender, frame))?;
    problem.requirements.iter().any(|id| ids.contains(id)).then_some((index, problem))
}

/// The event of the Send that a Terminate reports.
fn send_link(track: &Track, sender: Direction, terminate: &TerminateReport) -> Link {
    let end = track.end(sender);
    let send = terminate.target.and_then(|frame| track.accesses[sender].send_in(frame));
    let name = send.map_or("Send", |send| send.opcode.name());
    let len = send.map_or_else(String::new, |send| format!(" of {}", counted(send.len, "byte")));
    let msn = terminate.msn().map_or_else(String::new, |msn| format!(" with MSN {}", msn.get()));
    Link::new(sender, terminate.target, format!("{end} sends a {name}{len}{msn}"))
}

/// Explains a Terminate about a wrong CRC.
fn crc(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let (own, peer, sender) = (track.end(owner), track.end(owner.peer()), owner.peer());
    let mut bad = track.bad_crcs.iter().rev();
    let bad = bad.find(|bad| bad.direction == sender && bad.frame < terminate.frame);
    let error = bad.and_then(|bad| track.problems.error_in(sender, bad.frame));
    if let Some((index, problem)) = error.filter(|_| bad.is_some_and(|bad| !bad.is_damaged && bad.repaired.is_none())) {
        return Verdict::of(index, problem, track);
    }
    let number = u8::from(sender);
    let mut own_problems = track.problems.list.iter().filter(|problem| problem.direction == number);
    let is_of_network = |bad: &&BadCrc| {
        bad.is_damaged || bad.repaired.is_some() || own_problems.any(|problem| problem.is_in(bad.frame))
    };
    let Some(bad) = bad.filter(is_of_network) else {
        let headline = format!("{own} reports a wrong CRC of {peer}");
        let verdict = Verdict::new(Cause::BadCrc, Culprit::NotInCapture, headline);
        let what = format!("an FPDU of {peer} with a wrong CRC");
        return verdict.unknown(format!(
            "{what}; either bytes changed after the capture point, or {own} computes the CRC wrongly"
        ));
    };
    damaged(track, bad)
}

/// The verdict that the network damaged an FPDU.
pub(super) fn damaged(track: &Track, bad: &BadCrc) -> Verdict {
    let sender = track.end(bad.direction);
    let headline = format!("the network damaged an FPDU of {sender}");
    let why = match bad.repaired {
        Some(repeat) => format!("frame {repeat} repeats it with other bytes and a right CRC"),
        None if bad.is_damaged => "its TCP checksum is wrong, too".to_owned(),
        None => "a retransmission has other bytes".to_owned(),
    };
    let text = format!("an FPDU of {sender} arrives with a wrong CRC; {why}");
    let link = Link { direction: None, ..Link::new(bad.direction, Some(bad.frame), text) };
    Verdict::new(Cause::Damaged, Culprit::Network, headline).then(link)
}

/// Explains a Terminate of an Initiator that cannot supply the IRD that the Reply requests.
fn insufficient_ird(track: &Track, owner: Direction) -> Verdict {
    let own = track.end(owner);
    let headline = format!("{own} has too few IRD resources for its peer");
    let verdict = Verdict::new(Cause::Startup, Culprit::NotInCapture, headline);
    let frames = (track.startup.of(owner), track.startup.of(owner.peer()));
    let depths = match frames {
        (Some(own), Some(peer)) => own.ird.zip(peer.ord),
        _ => None,
    };
    match depths {
        Some((ird, ord)) => verdict.unknown(format!("why {own} offers IRD {ird} and its peer requests ORD {ord}")),
        None => verdict.unknown("the depths that the endpoints requested"),
    }
}

/// Explains a Terminate by the first problem of the peer that fits the error.
fn by_kind(track: &Track, owner: Direction, terminate: &TerminateReport) -> Verdict {
    let (own, peer) = (track.end(owner), track.end(owner.peer()));
    let errors = track.problems.errors_of(owner.peer());
    let mut fitting = errors.filter(|(_, problem)| {
        problem.first() < terminate.frame && fits(terminate, problem.kind) && terminate.target.is_none()
    });
    if let Some((index, problem)) = fitting.next() {
        return Verdict::of(index, problem, track);
    }
    let name = if terminate.error.is_assigned() { terminate.error.name() } else { "an unassigned error code" };
    let headline = format!("{own} ends the connection with a Terminate ({name})");
    let verdict = Verdict::new(Cause::Terminate, Culprit::NotInCapture, headline);
    let verdict = match terminate.target {
        Some(frame) => {
            let text = format!("{peer} sends the message that the Terminate reports");
            verdict.then(Link::new(owner.peer(), Some(frame), text))
        }
        None => verdict,
    };
    verdict.unknown(format!("an error of {peer} that fits the Terminate"))
}
