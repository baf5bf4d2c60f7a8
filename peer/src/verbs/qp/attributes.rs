//! Arguments and results of Queue Pair verbs (draft section 9.2.5).

use bytes::Bytes;
use weft_core::wire::rdmap::Terminate;

use super::table::{Attribute, QpState};
use crate::memory::{PdId, QpId};
use crate::verbs::{CqHandle, LlpHandle, SrqHandle};

/// The arguments of Create QP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpInit {
    /// The PD.
    pub pd: PdId,
    /// Where the Send Queue completes.
    pub sq_cq: CqHandle,
    /// Where the Receive Queue completes.
    pub rq_cq: CqHandle,
    /// Receives come from here.
    pub srq: Option<SrqHandle>,
    /// Outstanding work requests of the Send Queue.
    pub max_sq_wrs: u32,
    /// Outstanding work requests of the Receive Queue; ignored with an S-RQ.
    pub max_rq_wrs: u32,
    /// Elements of a Send's list.
    pub max_send_sges: u32,
    /// Elements of a Write's list.
    pub max_write_sges: u32,
    /// Elements of a receive's list; ignored with an S-RQ.
    pub max_receive_sges: u32,
    /// An event is raised when more messages than these are in progress; 0 for none. Only with an
    /// S-RQ.
    pub rq_limit: u32,
    /// Reads and Atomic Operations in flight.
    pub ord: u32,
    /// Inbound Read and Atomic Requests that are held.
    pub ird: u32,
    /// Peers may read.
    pub inbound_read: bool,
    /// Peers may write, and Reads of one's own may be answered.
    pub inbound_write: bool,
    /// Windows may be bound.
    pub bind: bool,
    /// The effect of a message for which no receive is posted.
    pub overflow: ReceiveOverflow,
    /// The effect of a segment that arrives after this side has closed.
    pub late: LateSegment,
}

/// The effect of a message for which no receive is posted (draft section 13.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReceiveOverflow {
    /// It ends the stream.
    #[default]
    Terminate,
    /// It waits for a receive, with everything after it: nothing more is read from TCP, whose
    /// window closes.
    Wait,
}

/// What a segment does that arrives in Closing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LateSegment {
    /// It ends the stream by a reset, which throws away what TCP has not sent yet (draft Figure
    /// 11).
    #[default]
    Reset,
    /// It is dropped: for a protocol whose peer may still have something on its way when this side
    /// closes, and that has octets of its own on theirs.
    Drop,
}

impl QpInit {
    /// A Queue Pair with 256 work requests a queue, four elements each, 16 Reads each way and
    /// everything enabled; a message without receive ends the stream, and so does what arrives
    /// after the close.
    #[must_use]
    pub const fn new(pd: PdId, sq_cq: CqHandle, rq_cq: CqHandle) -> Self {
        QpInit {
            pd,
            sq_cq,
            rq_cq,
            srq: None,
            max_sq_wrs: 256,
            max_rq_wrs: 256,
            max_send_sges: 4,
            max_write_sges: 4,
            max_receive_sges: 4,
            rq_limit: 0,
            ord: 16,
            ird: 16,
            inbound_read: true,
            inbound_write: true,
            bind: true,
            overflow: ReceiveOverflow::Terminate,
            late: LateSegment::Reset,
        }
    }
}

/// A Terminate that ended a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminateRecord {
    /// The message.
    pub terminate: Terminate,
    /// This side sent it, or tried to.
    pub local: bool,
}

/// The result of Query QP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpAttributes {
    /// The Queue Pair ID.
    pub id: QpId,
    /// As it was made, with the sizes and limits of now.
    pub init: QpInit,
    /// STag 0 and Fast-Register are enabled.
    pub privileged: bool,
    /// The state.
    pub state: QpState,
    /// The RQ limit's event is still to come.
    pub rq_limit_armed: bool,
    /// The Terminate, in Terminate and Error.
    pub terminate: Option<TerminateRecord>,
    /// The stream, while there is one.
    pub llp: Option<LlpHandle>,
}

/// The arguments of Modify QP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QpModify {
    /// The next state; the present one to change attributes only.
    pub next: QpState,
    /// The stream.
    pub llp: Option<LlpHandle>,
    /// Octets that go out before everything else, not as an iWARP message: the last streaming
    /// message, an MPA Reply.
    pub stream_message: Option<Bytes>,
    /// ORD.
    pub ord: Option<u32>,
    /// IRD.
    pub ird: Option<u32>,
    /// Size of the Send Queue.
    pub max_sq_wrs: Option<u32>,
    /// Size of the Receive Queue.
    pub max_rq_wrs: Option<u32>,
    /// The RQ limit; it is armed unless 0.
    pub rq_limit: Option<u32>,
}

impl QpModify {
    /// To `next`, and nothing else.
    #[must_use]
    pub const fn to(next: QpState) -> Self {
        QpModify {
            next,
            llp: None,
            stream_message: None,
            ord: None,
            ird: None,
            max_sq_wrs: None,
            max_rq_wrs: None,
            rq_limit: None,
        }
    }

    /// To RTS on a stream.
    #[must_use]
    pub fn to_rts(llp: LlpHandle) -> Self {
        QpModify { llp: Some(llp), ..QpModify::to(QpState::Rts) }
    }

    /// The attributes that are given.
    pub(super) fn given(&self) -> impl Iterator<Item = Attribute> {
        let given = [
            (Attribute::LlpStreamHandle, self.llp.is_some()),
            (Attribute::StreamMessage, self.stream_message.is_some()),
            (Attribute::Ord, self.ord.is_some()),
            (Attribute::Ird, self.ird.is_some()),
            (Attribute::SqWrs, self.max_sq_wrs.is_some()),
            (Attribute::RqWrs, self.max_rq_wrs.is_some()),
            (Attribute::RqLimit, self.rq_limit.is_some()),
        ];
        given.into_iter().filter_map(|(attribute, is_given)| is_given.then_some(attribute))
    }
}

/// The attributes that a Queue Pair got from Create QP or Modify QP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpAllocated {
    /// Work requests of the Send Queue.
    pub max_sq_wrs: u32,
    /// Work requests of the Receive Queue; `None` with an S-RQ.
    pub max_rq_wrs: Option<u32>,
    /// Elements of a Send's list.
    pub max_send_sges: u32,
    /// Elements of a Write's list.
    pub max_write_sges: u32,
    /// Elements of a receive's list; `None` with an S-RQ.
    pub max_receive_sges: Option<u32>,
    /// ORD: as requested, or what a pool had left of it; at least 1 unless 0 was requested.
    pub ord: u32,
    /// IRD, likewise.
    pub ird: u32,
}
