//! Explains a Terminate that rejects an access to memory: a wrong STag, a range beyond the buffer,
//! or a missing right.

use weft_core::wire::rdmap::{Opcode, TerminateError};

use crate::direction::Direction;
use crate::format::counted;
use crate::frame_number::FrameNumber;

use super::buffers::{Advert, Buffer, Span};
use super::terminate::TerminateReport;
use super::track::{Invalidation, Track};
use super::verdict::{Cause, Culprit, Link, Verdict};

/// The reason that a Terminate gives for rejecting an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Bounds,
    Stag,
    Rights,
    Wrap,
}

/// The rejected access.
struct Rejected<'t> {
    track: &'t Track,
    terminate: &'t TerminateReport,
    /// The endpoint that sent the Terminate. It owns the memory.
    owner: Direction,
    opcode: Opcode,
    span: Span,
    /// The frame of the access, if it is known.
    frame: Option<FrameNumber>,
}

/// Explains a Terminate of `owner`. Returns `None` if it does not reject an access to memory, or if
/// the access is not known.
pub(super) fn explain(track: &Track, owner: Direction, terminate: &TerminateReport) -> Option<Verdict> {
    let reason = reason(terminate.error)?;
    if let Some(stag) = terminate.invalidated_stag() {
        return Some(invalidation(track, owner, terminate, stag));
    }
    let rejected = Rejected::find(track, owner, terminate)?;
    Some(match reason {
        Reason::Wrap if rejected.span.wraps() => rejected.wraps(),
        Reason::Wrap => rejected.unknown("why the offset of the access wraps"),
        Reason::Bounds => rejected.bounds(),
        Reason::Stag => rejected.stag(),
        Reason::Rights => rejected.rights(),
    })
}

fn reason(error: TerminateError) -> Option<Reason> {
    Some(match error {
        TerminateError::RDMAP_BASE_OR_BOUNDS | TerminateError::DDP_TAGGED_BASE_OR_BOUNDS => Reason::Bounds,
        TerminateError::RDMAP_ACCESS_RIGHTS => Reason::Rights,
        TerminateError::RDMAP_TO_WRAP | TerminateError::DDP_TAGGED_TO_WRAP => Reason::Wrap,
        TerminateError::RDMAP_INVALID_STAG
        | TerminateError::RDMAP_STAG_NOT_ASSOCIATED
        | TerminateError::RDMAP_PROTECTION_CANNOT_INVALIDATE
        | TerminateError::RDMAP_OPERATION_CANNOT_INVALIDATE
        | TerminateError::DDP_TAGGED_INVALID_STAG
        | TerminateError::DDP_TAGGED_STAG_NOT_ASSOCIATED => Reason::Stag,
        _ => return None,
    })
}

/// Explains a Terminate about a Send with Invalidate that names `stag`.
fn invalidation(track: &Track, owner: Direction, terminate: &TerminateReport, stag: u32) -> Verdict {
    let (own, peer) = (track.end(owner), track.end(owner.peer()));
    let text = format!("{peer} sends a Send with Invalidate of STag {stag:#010x}");
    let link = Link::new(owner.peer(), terminate.target, text);
    let before = terminate.target.unwrap_or(terminate.frame);
    let headline = format!("{own} cannot invalidate STag {stag:#010x}, which a Send of {peer} names");
    let is_known = terminate.target.is_some();
    let is_earlier = |it: &&Invalidation| is_known && it.owner == owner && it.stag == stag && it.frame < before;
    let verdict = Verdict::new(Cause::InvalidStag, Culprit::NotInCapture, headline);
    if let Some(earlier) = track.invalidations.iter().rev().find(is_earlier) {
        let text = format!("{peer} invalidates STag {stag:#010x} with an earlier Send");
        let earlier = Link::new(owner.peer(), Some(earlier.frame), text);
        let what = format!("whether {own} registered the STag again in the meantime");
        return verdict.then(earlier).then(link).unknown(what);
    }
    let verdict = verdict.then(link);
    if track.buffers[owner].never_has(stag, before) {
        verdict.unknown(format!("the STag {stag:#010x} before frame {before}: {own} never sent it"))
    } else {
        verdict.unknown(format!("why {own} cannot invalidate the STag"))
    }
}

impl<'t> Rejected<'t> {
    fn find(track: &'t Track, owner: Direction, terminate: &'t TerminateReport) -> Option<Self> {
        let accesses = &track.accesses[owner.peer()];
        let opcode = terminate.opcode()?;
        let copied = terminate.span();
        let in_target = terminate.target.and_then(|frame| accesses.in_frame(opcode, frame));
        let containing = copied.and_then(|span| accesses.containing(opcode, span, terminate.frame));
        // The copied header has the exact range, but possibly only of one segment of the message.
        let access = containing.or(in_target.filter(|access| copied.is_none_or(|it| it.stag == access.span.stag)));
        let span = access.map(|access| access.span).or(copied)?;
        let frame = access.map(|access| access.first).or(terminate.target);
        Some(Rejected { track, terminate, owner, opcode, span, frame })
    }

    fn own(&self) -> &'t str {
        self.track.end(self.owner)
    }

    fn peer(&self) -> &'t str {
        self.track.end(self.owner.peer())
    }

    fn before(&self) -> FrameNumber {
        self.frame.unwrap_or(self.terminate.frame)
    }

    fn is_response(&self) -> bool {
        self.opcode == Opcode::READ_RESPONSE
    }

    fn buffer(&self) -> Option<Buffer> {
        self.track.buffers[self.owner].find(self.span, self.before(), self.is_response())
    }

    /// The access as a noun, for example "RDMA Write of 160 bytes".
    fn name(&self) -> String {
        match self.span.len {
            0 => self.opcode.name().to_owned(),
            len => format!("{} of {}", self.opcode.name(), counted(len, "byte")),
        }
    }

    /// The event of the access.
    fn link(&self) -> Link {
        let Span { stag, to, .. } = self.span;
        let text = format!("{} sends an {} with STag {stag:#010x} and offset {to:#x}", self.peer(), self.name());
        Link::new(self.owner.peer(), self.frame, text)
    }

    /// The event of the advertisement.
    fn advertised(&self, buffer: Buffer) -> Link {
        let Buffer { stag, to, len, frame, advert } = buffer;
        let with = match advert {
            Advert::ReadRequest => "a Read Request",
            Advert::SrcAvail => "a SrcAvail",
            Advert::SinkAvail => "a SinkAvail",
            Advert::Send => "a Send",
        };
        let len = counted(len, "byte");
        let text = format!("{} advertises {len} with STag {stag:#010x} and offset {to:#x} in {with}", self.own());
        Link::new(self.owner, Some(frame), text)
    }

    /// A verdict without a culprit.
    fn unknown(&self, what: &str) -> Verdict {
        let headline = format!("{} rejects an {} of {}", self.own(), self.name(), self.peer());
        Verdict::new(Cause::Terminate, Culprit::NotInCapture, headline).then(self.link()).unknown(what)
    }

    fn wraps(&self) -> Verdict {
        let headline = format!("an {} of {} goes beyond the largest offset", self.name(), self.peer());
        let verdict = Verdict::new(Cause::BeyondBuffer, self.owner.peer().into(), headline).then(self.link());
        verdict.advice(self.peer(), "offset and length of an access must not exceed 2^64 together")
    }

    fn bounds(&self) -> Verdict {
        let Some(buffer) = self.buffer() else {
            let what = format!("the buffer that {} exceeded: no message in the capture advertises it", self.peer());
            let verdict = self.unknown(&what);
            return Verdict { cause: Cause::BeyondBuffer, ..verdict };
        };
        let (before, after) = buffer.excess(self.span);
        if before + after == 0 {
            return self.inside(buffer);
        }
        let (count, side) = if after > 0 { (after, "beyond the end of") } else { (before, "before the start of") };
        let count = counted(count, "byte");
        let (own, peer, name) = (self.own(), self.peer(), self.name());
        let headline = format!("an {name} of {peer} goes {count} {side} the buffer of {own}");
        let mut link = self.link();
        let len = counted(buffer.len, "byte");
        link.text = format!("{}, {count} {side} the {len} advertised in frame {}", link.text, buffer.frame);
        let verdict = Verdict::new(Cause::BeyondBuffer, self.owner.peer().into(), headline);
        let verdict = verdict.then(self.advertised(buffer)).then(link);
        let what = format!("an access must stay within the {len} that the peer advertised (frame {})", buffer.frame);
        verdict.advice(self.peer(), &what)
    }

    /// The access is inside the advertised buffer.
    fn inside(&self, buffer: Buffer) -> Verdict {
        let links = |verdict: Verdict| verdict.then(self.advertised(buffer)).then(self.link());
        let (own, frame) = (self.own(), buffer.frame);
        if self.is_response() {
            let headline = format!("{own} rejects the answer to its own Read Request (frame {frame})");
            let verdict = links(Verdict::new(Cause::OwnReadRequest, self.owner.into(), headline));
            let what = "the Data Sink of a Read Request must be valid, and at least as long as the request";
            return verdict.advice(own, what);
        }
        let name = self.name();
        let headline = format!("{own} rejects an {name} inside the buffer that it advertised in frame {frame}");
        let verdict = links(Verdict::new(Cause::Terminate, Culprit::NotInCapture, headline));
        verdict.unknown(format!("why {own} rejects the access: STag, offset and length match the advertisement"))
    }

    fn stag(&self) -> Verdict {
        let (own, peer, stag, before) = (self.own(), self.peer(), self.span.stag, self.before());
        let headline = format!("{peer} used STag {stag:#010x}, which is not valid at {own}");
        // After an invalidation, a new advertisement makes the STag valid again.
        let advertised = self.buffer().map(|buffer| buffer.frame);
        let is_same = |it: &&Invalidation| {
            let is_last = advertised.is_none_or(|advertised| advertised < it.frame);
            it.owner == self.owner && it.stag == stag && it.frame < before && is_last
        };
        if let Some(invalidated) = self.track.invalidations.iter().rev().find(is_same) {
            let text = format!("{peer} invalidates STag {stag:#010x} with a Send");
            let verdict = Verdict::new(Cause::InvalidStag, self.owner.peer().into(), headline);
            let verdict = verdict.then(Link::new(self.owner.peer(), Some(invalidated.frame), text)).then(self.link());
            return verdict.advice(peer, "do not use an STag after a Send with Invalidate has invalidated it");
        }
        if self.buffer().is_some() {
            return self.bounds();
        }
        let buffers = &self.track.buffers[self.owner];
        if let Some(other) = buffers.find_other_stag(self.span, before) {
            let verdict = Verdict::new(Cause::InvalidStag, self.owner.peer().into(), headline);
            let verdict = verdict.then(self.advertised(other)).then(self.link());
            let what = format!("use the advertised STag {:#010x} (frame {})", other.stag, other.frame);
            return verdict.advice(peer, &what);
        }
        let earlier = self.track.accesses[self.owner.peer()].before(before).find(|it| it.span.stag == stag);
        let what = match earlier {
            Some(earlier) => format!(
                "why the STag is no longer valid: {own} accepted it in frame {}, and no message invalidates it",
                earlier.first
            ),
            None if buffers.never_has(stag, before) => {
                format!("the origin of the STag: {own} never sent it before frame {before}")
            }
            None => "the message that advertised the STag".to_owned(),
        };
        let headline = format!("{own} rejects STag {stag:#010x}, which {peer} used");
        let verdict = Verdict::new(Cause::InvalidStag, Culprit::NotInCapture, headline);
        verdict.then(self.link()).unknown(what)
    }

    fn rights(&self) -> Verdict {
        let (own, peer) = (self.own(), self.peer());
        let headline = format!("{peer} has no right for an {} to the memory of {own}", self.name());
        let buffer = self.buffer();
        let forbidden = match (buffer.map(|buffer| buffer.advert), self.opcode) {
            (Some(Advert::SrcAvail), Opcode::WRITE) => Some("a SrcAvail only allows Reads"),
            (Some(Advert::SinkAvail), Opcode::READ_REQUEST) => Some("a SinkAvail only allows Writes"),
            _ => None,
        };
        let culprit = if forbidden.is_some() { self.owner.peer().into() } else { Culprit::NotInCapture };
        let mut verdict = Verdict::new(Cause::AccessRights, culprit, headline);
        if let Some(buffer) = buffer {
            verdict = verdict.then(self.advertised(buffer));
        }
        verdict = verdict.then(self.link());
        match forbidden {
            Some(rule) => verdict.advice(peer, rule),
            None => verdict.unknown(format!("the rights that {own} gave to the STag")),
        }
    }
}
