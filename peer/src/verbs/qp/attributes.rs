//! Arguments and results of Queue Pair verbs (draft-hilland-rddp-verbs section 9.2.5).

use bytes::Bytes;
use weft_core::wire::rdmap::Terminate;

use super::table::{Attribute, QpState};
use crate::memory::{PdId, QpId};
use crate::verbs::{CqHandle, LlpHandle, SrqHandle};

/// The arguments of the verb Create QP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpInit {
    /// PD of the Queue Pair.
    pub pd: PdId,
    /// CQ for completions of the Send Queue.
    pub sq_cq: CqHandle,
    /// CQ for completions of the Receive Queue.
    pub rq_cq: CqHandle,
    /// S-RQ that provides the receives. `None`: the Queue Pair has its own Receive Queue.
    pub srq: Option<SrqHandle>,
    /// Greatest number of outstanding Work Requests of the Send Queue.
    pub max_sq_wrs: u32,
    /// Greatest number of outstanding Work Requests of the Receive Queue. Ignored if the Queue Pair
    /// has an S-RQ.
    pub max_rq_wrs: u32,
    /// Greatest number of gather elements of a Send.
    pub max_send_sges: u32,
    /// Greatest number of gather elements of a Write.
    pub max_write_sges: u32,
    /// Greatest number of scatter elements of a receive. Ignored if the Queue Pair has an S-RQ.
    pub max_receive_sges: u32,
    /// If more messages than this number are in progress, the RNIC raises an event. 0 means no
    /// event. The limit has an effect only if the Queue Pair has an S-RQ.
    pub rq_limit: u32,
    /// Greatest number of outstanding Reads and Atomic Operations.
    pub ord: u32,
    /// Greatest number of the peer's Read and Atomic Requests that the Queue Pair stores at a time.
    pub ird: u32,
    /// The peer may use Reads and Atomic Operations.
    pub inbound_read: bool,
    /// The peer may use Writes, and may send Read Responses to this endpoint.
    pub inbound_write: bool,
    /// This Queue Pair may bind windows.
    pub bind: bool,
    /// Handling of a message for which no receive is posted.
    pub overflow: ReceiveOverflow,
    /// Handling of a segment that arrives after this endpoint has closed.
    pub late: LateSegment,
}

/// Handling of a message for which no receive is posted (draft section 13.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReceiveOverflow {
    /// The message ends the stream.
    #[default]
    Terminate,
    /// The message waits for a receive, and all bytes after the message wait, too. During this
    /// time, the driver reads nothing from TCP, so the TCP window closes.
    Wait,
}

/// Handling of a segment that arrives in state Closing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LateSegment {
    /// The segment causes a reset of the stream. TCP then discards bytes that it has not sent yet
    /// (draft Figure 11).
    #[default]
    Reset,
    /// The segment is dropped. This setting is for protocols in which the peer can still send when
    /// this endpoint closes. In these protocols, a reset would discard bytes that this endpoint
    /// must deliver.
    Drop,
}

impl QpInit {
    /// Default arguments: 256 Work Requests per queue, four elements per list, and 16 Reads in each
    /// direction. All operations are enabled. A message without a posted receive ends the stream. A
    /// segment that arrives after the close also ends the stream.
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
    /// Contents of the Terminate.
    pub terminate: Terminate,
    /// True if this endpoint sent the Terminate or tried to send it.
    pub local: bool,
}

/// The result of the verb Query QP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpAttributes {
    /// The Queue Pair ID.
    pub id: QpId,
    /// The arguments of the verb Create QP, with the current sizes and limits.
    pub init: QpInit,
    /// STag 0 and Fast-Register are enabled.
    pub privileged: bool,
    /// The current state.
    pub state: QpState,
    /// The event for the RQ limit is armed and was not raised yet.
    pub rq_limit_armed: bool,
    /// The Terminate of the last stream. `None` in states other than Terminate and Error.
    pub terminate: Option<TerminateRecord>,
    /// The stream. `None` if the Queue Pair has no stream.
    pub llp: Option<LlpHandle>,
}

/// The arguments of the verb Modify QP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QpModify {
    /// The next state. If this is the current state, only attributes change.
    pub next: QpState,
    /// The stream for the Queue Pair.
    pub llp: Option<LlpHandle>,
    /// Bytes to send before all FPDUs, without framing: the last streaming message or an MPA Reply.
    pub stream_message: Option<Bytes>,
    /// New ORD.
    pub ord: Option<u32>,
    /// New IRD.
    pub ird: Option<u32>,
    /// New size of the Send Queue.
    pub max_sq_wrs: Option<u32>,
    /// New size of the Receive Queue.
    pub max_rq_wrs: Option<u32>,
    /// New RQ limit. If the limit is not 0, the event for the limit is armed.
    pub rq_limit: Option<u32>,
}

impl QpModify {
    /// Arguments that change only the state. The new state is `next`.
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

    /// Arguments that change the state to RTS, with the stream `llp`.
    #[must_use]
    pub fn to_rts(llp: LlpHandle) -> Self {
        QpModify { llp: Some(llp), ..QpModify::to(QpState::Rts) }
    }

    /// The attributes that have a new value.
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
    /// Greatest number of outstanding Work Requests of the Send Queue.
    pub max_sq_wrs: u32,
    /// Greatest number of outstanding Work Requests of the Receive Queue. `None` with an S-RQ.
    pub max_rq_wrs: Option<u32>,
    /// Greatest number of gather elements of a Send.
    pub max_send_sges: u32,
    /// Greatest number of gather elements of a Write.
    pub max_write_sges: u32,
    /// Greatest number of scatter elements of a receive. `None` with an S-RQ.
    pub max_receive_sges: Option<u32>,
    /// The effective ORD. If the pool cannot supply the requested ORD, the effective ORD is lower
    /// than the requested ORD. If the requested ORD is above 0, the effective ORD is at least 1.
    pub ord: u32,
    /// The effective IRD. The rules of `ord` apply.
    pub ird: u32,
}
