//! Remarks on a unit: facts that do not fit what came before. Rules decide which requirement each
//! one violates.

use std::ops::Range;

use weft_core::wire::rdmap::Opcode;

use crate::direction::Direction;
use crate::parse::Located;

/// A remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// What does not fit.
    pub what: What,
    /// The direction of the end that caused it.
    pub direction: Direction,
    /// The octets that show it, in coordinates of the current unit; empty if they are in an earlier
    /// unit.
    pub range: Range<usize>,
    /// Location of the octets in an earlier unit.
    pub octets: Located,
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// No segment of an untagged message has MO 0; this is the lowest MO.
    FirstOffset(u32),
    /// An offset is not where the payload before it ended, and the segments do not make a complete
    /// message in another order either.
    Offset {
        /// TO or MO?
        tagged: bool,
        /// Where the payload before it ended.
        expected: u64,
        /// The offset found.
        found: u64,
        /// Are octets of the message never sent?
        missing: bool,
    },
    /// The segments make a complete message, but were sent in another order.
    Order {
        /// TO or MO?
        tagged: bool,
        /// Where the payload before it ended.
        expected: u64,
        /// The offset found.
        found: u64,
    },
    /// A message begins although the one before it has no last segment.
    NotLast(Opcode),
    /// A segment of a message comes after its last segment.
    AfterLast {
        /// MO of the segment with L.
        last: u32,
        /// MO of this one.
        found: u32,
        /// Does this segment have L, too?
        again: bool,
    },
    /// The first MSN of a queue is not 1.
    MsnFirst {
        /// QN.
        queue: u32,
        /// The MSN.
        found: u32,
    },
    /// An MSN does not follow the previous MSN of its queue.
    MsnStep {
        /// QN.
        queue: u32,
        /// One more than the MSN before.
        expected: u32,
        /// The MSN.
        found: u32,
    },
    /// A message comes after a message of its queue with a higher MSN, which followed a hole in the
    /// MSNs.
    MsnBack {
        /// The message.
        opcode: Opcode,
        /// QN.
        queue: u32,
        /// Its MSN.
        found: u32,
    },
    /// A message has an MSN that its queue had before.
    MsnAgain {
        /// QN.
        queue: u32,
        /// One more than the MSN before.
        expected: u32,
        /// The MSN.
        found: u32,
    },
    /// A segment continues a message with another MSN.
    MsnChanged {
        /// The value in the segments before.
        from: u32,
        /// The value in this one.
        to: u32,
    },
    /// A segment continues a message in another queue.
    QnChanged {
        /// The value in the segments before.
        from: u32,
        /// The value in this one.
        to: u32,
    },
    /// A segment continues a tagged message with another STag.
    StagChanged {
        /// The message.
        opcode: Opcode,
        /// The value in the segments before.
        from: u32,
        /// The value in this one.
        to: u32,
    },
    /// A segment's RDMAP octets differ from those of the segments before it.
    UlpChanged {
        /// In tagged segments?
        tagged: bool,
        /// Control octet and Invalidate STag (0 in tagged segments) before.
        from: (u8, u32),
        /// And in this one.
        to: (u8, u32),
    },
    /// A message without payload came in this many segments.
    EmptySegments(u32),
    /// An FPDU in the middle of a message has no DDP header: it is too short, or no version bits
    /// fit.
    Headless,
    /// A Read Response has another STag than the Read Request.
    SinkStag {
        /// SinkSTag of the Request.
        expected: u32,
        /// STag of the Response.
        found: u32,
        /// Is it a later segment than the first?
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
        /// Number of its segments.
        segments: u32,
    },
    /// A response comes before that of an earlier request.
    ResponseOrder {
        /// Is it the Response of an Atomic Request, not of a Read?
        atomic: bool,
        /// Is the earlier request an Atomic Request?
        earlier_atomic: bool,
    },
    /// A Read Response to a Read Request of the same direction.
    SameDirection,
    /// An Atomic Response has another identifier than the Atomic Request.
    Identifier {
        /// The value in the Request.
        expected: u32,
        /// The value in the Response.
        found: u32,
    },
    /// An Atomic Response, not a Terminate, answers a TO that is not a multiple of eight.
    MisalignedAnswered {
        /// A FetchAdd, not a CmpSwap?
        fetch_add: bool,
        /// The TO.
        offset: u64,
    },
    /// A segment uses an STag that the same direction has invalidated. The owner has since sent
    /// nothing that could make it valid again.
    Invalidated {
        /// The STag.
        stag: u32,
        /// The frame of the Send with Invalidate.
        by: u64,
    },
    /// A message comes after the Terminate of the same direction.
    AfterTerminate(Opcode),
}
