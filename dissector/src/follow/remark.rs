//! What the books remark on while they take a unit in: facts that do not fit what came before. Rules say what they break.

use std::ops::Range;

use weft_core::wire::rdmap::Opcode;

use crate::unit::Located;

/// A remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// What.
    pub what: What,
    /// The direction of the one whose doing it is.
    pub direction: usize,
    /// The octets that show it, in coordinates of the unit at hand; empty if they are in an earlier unit.
    pub range: Range<usize>,
    /// Where they are in that case.
    pub octets: Located,
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// No segment of an untagged message has MO 0; its lowest one is this.
    FirstOffset(u32),
    /// An offset is not where the payload before it ended, and the segments do not make a whole in another order either.
    Offset {
        /// TO or MO?
        tagged: bool,
        /// Where the payload before it ended.
        expected: u64,
        /// What it is.
        found: u64,
        /// Are octets of the message never sent?
        missing: bool,
    },
    /// The segments make a whole, but not in the order in which they were sent.
    Order {
        /// TO or MO?
        tagged: bool,
        /// Where the payload before it ended.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// A message begins while the one before it has no last segment.
    NotLast(Opcode),
    /// A segment of a message whose last segment was there.
    AfterLast {
        /// MO of the segment with L.
        last: u32,
        /// MO of this one.
        found: u32,
        /// Has this one L, too?
        again: bool,
    },
    /// Another first MSN of a queue than 1.
    MsnFirst {
        /// QN.
        queue: u32,
        /// The MSN.
        found: u32,
    },
    /// An MSN that does not follow the one before it in its queue.
    MsnStep {
        /// QN.
        queue: u32,
        /// One more than the MSN before.
        expected: u32,
        /// The MSN.
        found: u32,
    },
    /// A message behind one of its queue that has a higher MSN, in whose place there was a hole.
    MsnBack {
        /// The message.
        opcode: Opcode,
        /// QN.
        queue: u32,
        /// Its MSN.
        found: u32,
    },
    /// A message with an MSN that its queue had before.
    MsnAgain {
        /// QN.
        queue: u32,
        /// One more than the MSN before.
        expected: u32,
        /// The MSN.
        found: u32,
    },
    /// A segment goes on with a message under another MSN.
    MsnChanged {
        /// Of the segments before.
        from: u32,
        /// Of this one.
        to: u32,
    },
    /// A segment goes on with a message in another queue.
    QnChanged {
        /// Of the segments before.
        from: u32,
        /// Of this one.
        to: u32,
    },
    /// A segment goes on with a tagged message under another STag.
    StagChanged {
        /// The message.
        opcode: Opcode,
        /// Of the segments before.
        from: u32,
        /// Of this one.
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
    /// A message of no octets came in this many segments.
    EmptySegments(u32),
    /// An FPDU in the middle of a message has no DDP header: it is too short, or none of its version bits fit.
    Headless,
    /// A Read Response has another STag than the Read Request.
    SinkStag {
        /// SinkSTag of the Request.
        expected: u32,
        /// STag of the Response.
        found: u32,
        /// Is it a segment behind the first?
        later: bool,
    },
    /// A Read Response begins at another TO than the Read Request says.
    SinkOffset {
        /// SinkTO of the Request.
        expected: u64,
        /// TO of the Response.
        found: u64,
    },
    /// A Read Response has another length than the Read Request says.
    ResponseLength {
        /// RDMARDSZ of the Request.
        expected: u32,
        /// Payload of the Response, in octets.
        found: u64,
        /// In how many segments.
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
        /// Of the Request.
        expected: u32,
        /// Of the Response.
        found: u32,
    },
    /// An Atomic Response, and no Terminate, to a TO that is no multiple of eight.
    MisalignedAnswered {
        /// A FetchAdd, not a CmpSwap?
        fetch_add: bool,
        /// The TO.
        offset: u64,
    },
    /// An STag that the same direction has invalidated, and whose owner has sent nothing since that could say that it is valid again.
    Invalidated {
        /// The STag.
        stag: u32,
        /// The frame of the Send with Invalidate.
        by: u64,
    },
    /// A message behind the Terminate of the same direction.
    AfterTerminate(Opcode),
}
