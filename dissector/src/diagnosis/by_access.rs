//! Explains a Terminate that rejects an access to memory: a wrong STag, a range beyond the buffer,
//! or a missing right.

use weft_core::wire::rdmap::{Opcode, TerminateError};

use crate::direction::Direction;
use crate::format::counted;
use crate::frame_number::FrameNumber;

use super::accesses::Access;
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
    let verdict = match reason {
        Reason::Wrap if rejected.span.wraps() => rejected.wraps(),
        Reason::Wrap => rejected.unknown("why the offset of the access wraps"),
        Reason::Bounds => rejected.bounds(),
        Reason::Stag => rejected.stag(),
        Reason::Rights => rejected.rights(),
    };
    Some(if rejected.frame.is_none() { rejected.by_copy(verdict) } else { verdict })
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

/// The message that advertises a buffer, with its article.
fn carrier(advert: Advert) -> &'static str {
    match advert {
        Advert::ReadRequest => "a Read Request",
        Advert::SrcAvail => "a SrcAvail",
        Advert::SinkAvail => "a SinkAvail",
        Advert::Nvme => "an NVMe command",
        Advert::Iser => "an iSCSI command",
        Advert::Send => "a Send",
    }
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
    if let Some((similar, frame)) = track.buffers[owner].find_similar_stag(stag, before) {
        let headline = format!("{peer} invalidates STag {stag:#010x}, which {own} did not advertise");
        let verdict = Verdict::new(Cause::InvalidStag, owner.peer().into(), headline);
        let sent = Link::new(owner, Some(frame), format!("{own} sends the similar STag {similar:#010x}"));
        return verdict.then(sent).then(link).advice(peer, &format!("use the STag {similar:#010x} (frame {frame})"));
    }
    let verdict = verdict.then(link);
    if track.buffers[owner].never_has(stag, before) {
        verdict.unknown(format!("the origin of the STag: {own} did not send it before frame {before}"))
    } else {
        verdict.unknown(format!("why {own} cannot invalidate the STag"))
    }
}

impl<'t> Rejected<'t> {
    fn find(track: &'t Track, owner: Direction, terminate: &'t TerminateReport) -> Option<Self> {
        let accesses = &track.accesses[owner.peer()];
        let opcode = terminate.opcode()?;
        let copied = terminate.span();
        // The copied header has the exact range, but possibly only of one segment of the message.
        // If bytes of the peer were not captured, an access to the same range can be another
        // message.
        let is_complete = track.carried[owner.peer()].other.missing_octets == 0;
        let reported = copied.zip(terminate.target);
        let reported = reported.and_then(|(span, frame)| accesses.in_frame(opcode, frame, span));
        let containing = copied.filter(|_| is_complete);
        let containing = containing.and_then(|span| accesses.containing(opcode, span, terminate.frame));
        let access = reported.or(containing);
        let span = access.map(|access| access.span).or(copied)?;
        let frame = access.map(|access| access.first);
        Some(Rejected { track, terminate, owner, opcode, span, frame })
    }

    /// Adds to a verdict about an access that was not captured that only the Terminate shows it.
    fn by_copy(&self, verdict: Verdict) -> Verdict {
        let headline = format!("{} (known only from the header in the Terminate)", verdict.headline);
        Verdict { headline, ..verdict }
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

    /// The buffer of the access. Each Read Response needs a Read Request of its own. So if bytes of
    /// the requester were not captured, the buffer of a response is not known.
    fn buffer(&self) -> Option<Buffer> {
        let is_lost = self.is_response() && self.track.carried[self.owner].other.missing_octets > 0;
        if is_lost {
            return None;
        }
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
        let Buffer { stag, to, len, frame, advert, .. } = buffer;
        let with = carrier(advert);
        let len = counted(len, "byte");
        let own = self.own();
        let text = match advert {
            Advert::ReadRequest => {
                format!("{own} sends a Read Request for {len} with Data Sink STag {stag:#010x} and offset {to:#x}")
            }
            _ => format!("{own} advertises {len} with STag {stag:#010x} and offset {to:#x} in {with}"),
        };
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
            let accepted = self.longest_accepted().map_or_else(String::new, |access| {
                let (len, name) = (counted(access.span.len, "byte"), access.opcode.name());
                format!("; {} accepted an {name} of {len} at the same offset in frame {}", self.own(), access.last)
            });
            let verdict = self.unknown(&format!("a message with the length of the buffer{accepted}"));
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
        let frame = buffer.frame;
        let what = match buffer.advert {
            Advert::ReadRequest => format!("a Read Response must have the {len} that frame {frame} requests"),
            _ => format!("an access must stay within the {len} that the peer advertised (frame {frame})"),
        };
        verdict.advice(self.peer(), &what)
    }

    /// The access is inside the advertised buffer.
    fn inside(&self, buffer: Buffer) -> Verdict {
        let links = |verdict: Verdict| verdict.then(self.advertised(buffer)).then(self.link());
        let (own, frame) = (self.own(), buffer.frame);
        if self.is_response() {
            let len = counted(buffer.len, "byte");
            let headline = match reason(self.terminate.error) {
                Some(Reason::Bounds) => format!("{own} read {len} into a shorter buffer of its own (frame {frame})"),
                _ => format!("{own} rejects the response to its own Read Request of {len} (frame {frame})"),
            };
            let verdict = links(Verdict::new(Cause::OwnReadRequest, self.owner.into(), headline));
            let what = "the Data Sink of a Read Request must be valid, and at least as long as the request";
            return verdict.advice(own, what);
        }
        let name = self.name();
        let headline = format!("{own} rejects an {name} inside the buffer that it advertised in frame {frame}");
        if reason(self.terminate.error) != Some(Reason::Bounds) {
            let verdict = links(Verdict::new(Cause::OwnBuffer, Culprit::NotInCapture, headline));
            return verdict.unknown(format!("why {own} rejects the access: STag, offset and length fit"));
        }
        let verdict = links(Verdict::new(Cause::OwnBuffer, self.owner.into(), headline));
        let len = counted(buffer.len, "byte");
        verdict.advice(own, &format!("register all {len} that frame {frame} advertises"))
    }

    /// The longest earlier access to the same offset.
    fn longest_accepted(&self) -> Option<&'t Access> {
        let Span { stag, to, len } = self.span;
        let earlier = self.track.accesses[self.owner.peer()].before(self.before());
        let earlier = earlier.filter(|it| (it.span.stag, it.span.to) == (stag, to) && it.span.len < len);
        earlier.max_by_key(|it| it.span.len)
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
        let earlier = self.track.accesses[self.owner.peer()].before(before).find(|it| it.span.stag == stag);
        if let Some(other) = buffers.find_other_stag(self.span, before).filter(|_| earlier.is_none()) {
            let headline =
                format!("{peer} used STag {stag:#010x} instead of {:#010x}, the STag of the buffer", other.stag);
            let verdict = Verdict::new(Cause::InvalidStag, self.owner.peer().into(), headline);
            let verdict = verdict.then(self.advertised(other)).then(self.link());
            let what = format!("use the advertised STag {:#010x} (frame {})", other.stag, other.frame);
            return verdict.advice(peer, &what);
        }
        let what = match earlier {
            Some(earlier) => format!(
                "why the STag is no longer valid: {own} accepted it in frame {}, and no message invalidates it",
                earlier.first
            ),
            None if buffers.never_has(stag, before) => {
                format!("the origin of the STag: {own} did not send it before frame {before}")
            }
            None => "the message that advertised the STag".to_owned(),
        };
        let headline = format!("{own} rejects STag {stag:#010x}, which {peer} used");
        let verdict = Verdict::new(Cause::InvalidStag, Culprit::NotInCapture, headline);
        verdict.then(self.link()).unknown(what)
    }

    fn rights(&self) -> Verdict {
        let (own, peer) = (self.own(), self.peer());
        let buffer = self.buffer();
        let forbidding = buffer.filter(|buffer| buffer.forbids(self.opcode));
        let (name, only) = (self.name(), forbidding.map(|buffer| buffer.allowed.name()));
        let headline = match only {
            Some(only) => format!("{peer} sent an {name} to a buffer that {own} advertised only for {only}"),
            None => format!("{peer} has no right for an {name} to the memory of {own}"),
        };
        let culprit = if forbidding.is_some() { self.owner.peer().into() } else { Culprit::NotInCapture };
        let mut verdict = Verdict::new(Cause::AccessRights, culprit, headline);
        if let Some(buffer) = buffer {
            verdict = verdict.then(self.advertised(buffer));
        }
        verdict = verdict.then(self.link());
        match forbidding {
            Some(buffer) => {
                let (with, only) = (carrier(buffer.advert), buffer.allowed.name());
                verdict.advice(peer, &format!("{with} like that of frame {} only allows {only}", buffer.frame))
            }
            None => verdict.unknown(format!("the rights that {own} gave to the STag")),
        }
    }
}
