//! Remarks on a unit, in most cases an FPDU. A remark records that this unit does not fit earlier
//! units. Rules decide which requirement is violated in this case.

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
    /// The octets that the remark is about, as a range in the current unit. If the octets are in an
    /// earlier unit, the range is empty.
    pub range: Range<usize>,
    /// The location of the octets in an earlier unit, if `range` is empty.
    pub octets: Location,
}

/// The kind of a fact that does not fit earlier units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemarkKind {
    /// No segment of an untagged message has MO 0. The value is the lowest MO.
    FirstOffset(u32),
    /// A segment does not begin at the offset where the previous payload ended. Even in another
    /// order, the segments of the message do not form a complete message.
    Offset {
        /// Whether the offsets are TOs. If false, they are MOs.
        tagged: bool,
        /// The offset where the previous payload ended.
        expected: u64,
        /// The offset at which the segment begins.
        found: u64,
        /// Whether the sender left out segments of the message.
        missing: bool,
    },
    /// The segments form a complete message, but were not sent in the order of their offsets.
    Order {
        /// Whether the offsets are TOs. If false, they are MOs.
        tagged: bool,
        /// The offset where the previous payload ended.
        expected: u64,
        /// The offset of the first segment that is out of order.
        found: u64,
    },
    /// A message begins although the previous message has no last segment.
    NoLastSegment(Opcode),
    /// A message has another segment after the segment with the L bit.
    AfterLast {
        /// MO of the last segment (the segment with the L bit).
        last: u32,
        /// MO of the segment that comes after the last segment.
        found: u32,
        /// Whether the segment that comes after the last segment also has the L bit.
        again: bool,
    },
    /// The first MSN of a queue is not 1.
    FirstMsn,
    /// The MSN of a message is higher than the previous MSN of its queue plus one.
    MsnGap {
        /// QN.
        queue: u32,
        /// The previous MSN plus one.
        expected: Msn,
        /// The MSN of the message.
        found: Msn,
    },
    /// A message has an MSN that was skipped in its queue: a message with a higher MSN came before
    /// this message.
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
        /// The highest MSN so far, plus one.
        expected: Msn,
        /// The MSN of the message.
        found: Msn,
    },
    /// A segment continues a message, but its MSN differs from the MSN of the earlier segments of
    /// the message.
    MsnChanged {
        /// The value in the earlier segments.
        from: Msn,
        /// The value in this segment.
        to: Msn,
    },
    /// A segment continues a message, but its QN differs from the QN of the earlier segments of the
    /// message.
    QnChanged {
        /// The value in the earlier segments.
        from: u32,
        /// The value in this segment.
        to: u32,
    },
    /// A segment continues a tagged message, but its STag differs from the STag of the earlier
    /// segments of the message.
    StagChanged {
        /// RDMAP's opcode of the message.
        opcode: Opcode,
        /// The value in the earlier segments.
        from: u32,
        /// The value in this segment.
        to: u32,
    },
    /// The RDMAP octets of a segment differ from the RDMAP octets of the earlier segments of the
    /// message.
    UlpChanged {
        /// Whether the message is tagged.
        tagged: bool,
        /// Two fields of the earlier segments: RDMAP's control octet, and the Invalidate STag. For
        /// tagged segments, the second value is 0.
        from: (u8, u32),
        /// The same two fields of this segment.
        to: (u8, u32),
    },
    /// A message without payload has more than one segment. The value is the number of segments.
    EmptySegments(u32),
    /// An FPDU in the middle of a message has no DDP header: the FPDU is too short, or several of
    /// the fixed fields are wrong.
    NoHeader,
    /// The STag of a Read Response differs from the SinkSTag of the Read Request.
    SinkStag {
        /// SinkSTag of the Request.
        expected: u32,
        /// STag of the Response.
        found: u32,
        /// Whether the different STag is in a later segment of the Response, and not in the first
        /// segment.
        later: bool,
    },
    /// A Read Response does not begin at the SinkTO of the Read Request.
    SinkOffset {
        /// SinkTO of the Request.
        expected: u64,
        /// TO of the Response.
        found: u64,
    },
    /// A Read Response does not have the length that the Read Request requested.
    ResponseLength {
        /// RDMARDSZ of the Request.
        expected: u32,
        /// Payload of the Response, in octets.
        found: u64,
        /// Number of segments of the Response.
        segments: u32,
    },
    /// The responder answered a request before it answered an earlier request.
    ResponseOrder {
        /// Whether this response answers an Atomic Request. If false, it answers a Read Request.
        atomic: bool,
        /// Whether the earlier request is an Atomic Request. If false, it is a Read Request.
        earlier_atomic: bool,
    },
    /// A Read Response answers a Read Request that was sent in the same direction.
    SameDirection,
    /// The Request Identifier in an Atomic Response differs from the Request Identifier in the
    /// Atomic Request.
    Identifier {
        /// The value in the Request.
        expected: u32,
        /// The value in the Response.
        found: u32,
    },
    /// The TO of an Atomic Request is not a multiple of eight, but the responder sent an Atomic
    /// Response and not a Terminate.
    MisalignedAnswered {
        /// Whether the operation is a FetchAdd. If false, it is a CmpSwap.
        fetch_add: bool,
        /// The TO.
        offset: u64,
    },
    /// An endpoint invalidated an STag of its peer with a Send with Invalidate. Later, a segment of
    /// the same endpoint uses this STag. After the Send and before that segment, the owner of the
    /// STag sent nothing that could make the STag valid again.
    Invalidated {
        /// The STag.
        stag: u32,
        /// The frame of the Send with Invalidate.
        by: FrameNumber,
    },
    /// An endpoint sent a message after its own Terminate.
    AfterTerminate(Opcode),
}
