//! Remarks on a unit (mostly an FPDU): facts that do not fit earlier units. Rules decide which
//! requirement each remark violates.

use std::ops::Range;

use weft_core::wire::ddp::Msn;
use weft_core::wire::rdmap::Opcode;

use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::Location;

/// A fact that does not fit earlier units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// The kind of the fact.
    pub kind: RemarkKind,
    /// The direction of the endpoint that sent the octets.
    pub direction: Direction,
    /// The octets concerned, as a range in the current unit. Empty if the octets are in an earlier
    /// unit.
    pub range: Range<usize>,
    /// Location of the octets in an earlier unit.
    pub octets: Location,
}

/// The kind of a fact that does not fit earlier units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemarkKind {
    /// No segment of an untagged message has MO 0. The value is the lowest MO.
    FirstOffset(u32),
    /// A segment does not begin at the offset where the previous payload ended. The segments do not
    /// form a complete message in another order either.
    Offset {
        /// Whether the offsets are TOs. Otherwise they are MOs.
        tagged: bool,
        /// The offset where the previous payload ended.
        expected: u64,
        /// The offset of the segment.
        found: u64,
        /// Whether the sender left out octets of the message.
        missing: bool,
    },
    /// The segments form a complete message, but were not sent in the order of their offsets.
    Order {
        /// Whether the offsets are TOs. Otherwise they are MOs.
        tagged: bool,
        /// The offset where the previous payload ended.
        expected: u64,
        /// The offset of the first segment that is out of order.
        found: u64,
    },
    /// A message begins although the previous message has no last segment.
    NoLastSegment(Opcode),
    /// A segment of a message comes after the last segment of that message.
    AfterLast {
        /// MO of the segment with L.
        last: u32,
        /// MO of the segment after it.
        found: u32,
        /// Whether the segment after it has the L bit, too.
        again: bool,
    },
    /// The first MSN of a queue is not 1.
    FirstMsn {
        /// QN.
        queue: u32,
        /// The MSN of the first message.
        found: Msn,
    },
    /// An MSN does not follow the previous MSN of its queue.
    MsnGap {
        /// QN.
        queue: u32,
        /// The previous MSN plus one.
        expected: Msn,
        /// The MSN of the message.
        found: Msn,
    },
    /// A message has an MSN that its queue had skipped, because a message with a higher MSN came
    /// first.
    MsnOutOfOrder {
        /// RDMAP's opcode of the message.
        opcode: Opcode,
        /// QN.
        queue: u32,
        /// The MSN of the message.
        found: Msn,
    },
    /// A message has an MSN that an earlier message of the queue already had.
    MsnRepeated {
        /// QN.
        queue: u32,
        /// The highest MSN so far plus one.
        expected: Msn,
        /// The MSN of the message.
        found: Msn,
    },
    /// A segment continues a message, but has another MSN than the segments before.
    MsnChanged {
        /// The value in the segments before.
        from: Msn,
        /// The value in this segment.
        to: Msn,
    },
    /// A segment continues a message, but has another QN than the segments before.
    QnChanged {
        /// The value in the segments before.
        from: u32,
        /// The value in this segment.
        to: u32,
    },
    /// A segment continues a tagged message, but has another STag than the segments before.
    StagChanged {
        /// RDMAP's opcode of the message.
        opcode: Opcode,
        /// The value in the segments before.
        from: u32,
        /// The value in this segment.
        to: u32,
    },
    /// A segment's RDMAP octets differ from those of the segments before it.
    UlpChanged {
        /// Whether the message is tagged.
        tagged: bool,
        /// RDMAP's control octet and Invalidate STag (0 in tagged segments) in the segments before.
        from: (u8, u32),
        /// The same fields in this segment.
        to: (u8, u32),
    },
    /// A message without payload has more than one segment. The value is the number of segments.
    EmptySegments(u32),
    /// An FPDU in the middle of a message has no DDP header: the FPDU is too short, or neither
    /// DDP's nor RDMAP's version bits are correct.
    NoHeader,
    /// A Read Response has another STag than the Read Request.
    SinkStag {
        /// SinkSTag of the Request.
        expected: u32,
        /// STag of the Response.
        found: u32,
        /// Whether the different STag is in a later segment of the Response, and not in the first
        /// segment.
        later: bool,
    },
    /// A Read Response begins at another TO than the Read Request names.
    SinkOffset {
        /// SinkTO of the Request.
        expected: u64,
        /// TO of the Response.
        found: u64,
    },
    /// A Read Response has another length than the Read Request names.
    ResponseLength {
        /// RDMARDSZ of the Request.
        expected: u32,
        /// Payload of the Response, in octets.
        found: u64,
        /// Number of segments of the Response.
        segments: u32,
    },
    /// A response comes before the response to an earlier request.
    ResponseOrder {
        /// Whether this response answers an Atomic Request. Otherwise it answers a Read Request.
        atomic: bool,
        /// Whether the earlier request is an Atomic Request.
        earlier_atomic: bool,
    },
    /// A Read Response answers a Read Request that was sent in the same direction.
    SameDirection,
    /// An Atomic Response has another identifier than the Atomic Request.
    Identifier {
        /// The value in the Request.
        expected: u32,
        /// The value in the Response.
        found: u32,
    },
    /// The responder answered an Atomic Request whose TO is not a multiple of eight with an Atomic
    /// Response instead of a Terminate.
    MisalignedAnswered {
        /// Whether the operation is a FetchAdd. Otherwise it is a CmpSwap.
        fetch_add: bool,
        /// The TO.
        offset: u64,
    },
    /// A segment uses an STag that an earlier Send with Invalidate of the same direction
    /// invalidated. Since then, the owner of the STag has sent nothing that could make the STag
    /// valid again.
    Invalidated {
        /// The STag.
        stag: u32,
        /// The frame of the Send with Invalidate.
        by: FrameNumber,
    },
    /// A message comes after the Terminate of the same direction.
    AfterTerminate(Opcode),
}
