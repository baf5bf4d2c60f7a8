//! Queue Pairs (draft-hilland-rddp-verbs chapter 6).
//!
//! - [`table`]: states, events, actions and attributes as a table;
//! - `machine`: executes the table;
//! - `send_queue`, `outbound`: the order of outbound messages, and the next segment;
//! - `inbound`: processing of inbound segments;
//! - `source`: memory of a scatter/gather list;
//! - `attributes`: arguments and results of the verbs.

mod attributes;
mod inbound;
mod machine;
pub(super) mod outbound;
mod send_queue;
mod source;
pub mod table;

pub use attributes::{LateSegment, QpAllocated, QpAttributes, QpInit, QpModify, ReceiveOverflow, TerminateRecord};

use std::collections::VecDeque;

use bytes::Bytes;
use weft_core::wire::ddp::{Msn, RawHeader};
use weft_core::wire::rdmap::{AtomicRequest, ReadRequest, Terminate};

use self::send_queue::SendQueue;
use self::table::{QpState, transition_of};
use super::error::{PostStatus, QpError};
use super::shared::Shared;
use super::slab::Key;
use super::work_request::{Fence, Operation, Payload, ReceiveWr, SendWr, length};
use super::{EventId, QpHandle, RnicSettings};
use crate::ddp::Segmenter;
use crate::hostile;
use crate::memory::{Accessor, PdId, QpId, STAG_ZERO};
use crate::mpa::Rtr;
use crate::rdmap::Receiver;
use crate::reject::reject_if;

pub(super) use self::machine::{Cause, Context, WireEvent};

#[derive(Debug)]
pub(super) struct Qp {
    pub(super) handle: QpHandle,
    pub(super) id: QpId,
    pub(super) init: QpInit,
    /// Effective ORD and IRD. With [deviations](crate::hostile), they can differ from the values in
    /// `init`.
    ord: u32,
    ird: u32,
    pub(super) sq_cq: Key,
    pub(super) rq_cq: Key,
    pub(super) srq: Option<Key>,
    /// PD for receives. If the Queue Pair has an S-RQ, this is the PD of the S-RQ. Otherwise it is
    /// the PD of the Queue Pair.
    pub(super) receive_pd: PdId,
    pub(super) privileged: bool,
    pub(super) state: QpState,
    sq: SendQueue,
    receives: VecDeque<ReceiveWr>,
    /// Number of posted receives, plus used receives whose completion was not polled. 0 if the
    /// Queue Pair has an S-RQ.
    receives_used: u32,
    /// Number of receives that were taken from the S-RQ and whose completion was not polled. This
    /// is the number of messages in progress (section 6.3.8).
    shared_receives: u32,
    /// The receive for the message that is arriving.
    receiving: Option<ReceiveWr>,
    pub(super) rq_limit_armed: bool,
    /// Inbound requests in order of arrival, without the request in `response`.
    irrq: VecDeque<InboundRequest>,
    /// `None` before the first stream, and while a segment is processed.
    receiver: Option<Receiver>,
    mulpdu: u16,
    version: u8,
    response: Option<Response>,
    /// True if the next response is sent before the next Work Request.
    response_turn: bool,
    send_msn: Msn,
    request_msn: Msn,
    atomic_msn: Msn,
    next_request_id: u32,
    terminate: Option<TerminateRecord>,
    /// The Terminate that a deviation delays.
    delayed: Option<Terminate>,
    /// Payload of the Terminate, until it is sent.
    terminate_out: Option<Bytes>,
    /// The Queue Pair entered Terminate without an Asynchronous Event.
    no_event_reported: bool,
    /// Event for a completion that a CQ rejected, or for a receive that a failed S-RQ did not
    /// provide.
    local_error: Option<EventId>,
    /// A copy of the eight bytes that the latest Atomic Operation changed, with their STag and TO.
    /// Only a deviation uses this copy.
    word: Option<((u32, u64), Vec<u8>)>,
    pub(super) llp: Option<Key>,
}

#[derive(Debug, Clone, Copy)]
struct InboundRequest {
    header: Option<RawHeader>,
    request: Request,
}

#[derive(Debug, Clone, Copy)]
enum Request {
    Read(ReadRequest),
    Atomic(AtomicRequest),
}

/// A response that is being sent.
#[derive(Debug)]
struct Response {
    message: Segmenter,
    of: InboundRequest,
    /// Payload of an Atomic Response. Empty for a Read Response, whose payload is in memory.
    octets: Bytes,
}

impl Qp {
    pub(super) fn new(
        handle: QpHandle,
        id: QpId,
        init: QpInit,
        (sq_cq, rq_cq): (Key, Key),
        srq: Option<(Key, PdId)>,
        privileged: bool,
    ) -> Self {
        Qp {
            handle,
            id,
            init,
            ord: init.ord,
            ird: init.ird,
            sq_cq,
            rq_cq,
            srq: srq.map(|(key, _)| key),
            receive_pd: srq.map_or(init.pd, |(_, pd)| pd),
            privileged,
            state: QpState::Idle,
            sq: SendQueue::new(init.max_sq_wrs),
            receives: VecDeque::new(),
            receives_used: 0,
            shared_receives: 0,
            receiving: None,
            rq_limit_armed: init.rq_limit > 0,
            irrq: VecDeque::new(),
            receiver: None,
            mulpdu: 0,
            version: 1,
            response: None,
            response_turn: true,
            send_msn: Msn::FIRST,
            request_msn: Msn::FIRST,
            atomic_msn: Msn::FIRST,
            next_request_id: 0,
            terminate: None,
            delayed: None,
            terminate_out: None,
            no_event_reported: false,
            local_error: None,
            word: None,
            llp: None,
        }
    }

    /// Connects the Queue Pair with a stream, and resets the state of RDMAP and DDP
    /// (VERBS-6.2.1.2-9).
    pub(super) fn attach(&mut self, llp: Key, mut mulpdu: u16, version: u8, shared: &Shared) {
        self.llp = Some(llp);
        let deviations = &shared.deviations;
        self.receiver = Some(Receiver::deviating(version, shared.settings.extensions, deviations.clone()));
        hostile::hook::mulpdu(deviations, &mut mulpdu);
        hostile::hook::depths(deviations, &mut self.ord, &mut self.ird);
        (self.mulpdu, self.version) = (mulpdu, version);
        (self.send_msn, self.request_msn, self.atomic_msn) = (Msn::FIRST, Msn::FIRST, Msn::FIRST);
        self.irrq.clear();
        (self.response, self.terminate, self.terminate_out, self.delayed) = (None, None, None, None);
        (self.no_event_reported, self.local_error) = (false, None);
    }

    /// Counts the sent ready-to-receive message. The next message of the same queue has MSN 2.
    pub(super) fn skip_outbound(&mut self, kind: Rtr) {
        match kind {
            Rtr::Send => self.send_msn = Msn::FIRST.next(),
            Rtr::Read => self.request_msn = Msn::FIRST.next(),
            Rtr::Write => {}
        }
    }

    /// Counts the received ready-to-receive message.
    pub(super) fn skip_inbound(&mut self, kind: Rtr) {
        match (kind, &mut self.receiver) {
            (Rtr::Send, Some(receiver)) => receiver.skip_send(),
            (Rtr::Read, Some(receiver)) => receiver.skip_request(),
            (Rtr::Write, Some(_)) | (_, None) => {}
        }
    }

    /// The accessor for everything except receives from an S-RQ.
    fn accessor(&self) -> Accessor {
        Accessor { pd: self.init.pd, qp: self.id, physical: self.privileged }
    }

    fn receive_accessor(&self) -> Accessor {
        Accessor { pd: self.receive_pd, ..self.accessor() }
    }

    /// Returns whether all work of the Send Queue and all requests of the peer are finished.
    pub(super) fn is_idle(&self) -> bool {
        self.sq.is_empty() && self.irrq.is_empty() && self.response.is_none()
    }

    /// Returns whether a message is arriving for a receive.
    pub(super) fn is_receiving(&self) -> bool {
        self.receiving.is_some()
    }

    pub(super) fn is_mid_message(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::is_mid_message)
    }

    pub(super) fn free_send_slot(&mut self) {
        self.sq.used = self.sq.used.saturating_sub(1);
    }

    pub(super) fn free_receive_slot(&mut self) {
        self.receives_used = self.receives_used.saturating_sub(1);
    }

    pub(super) fn free_shared_receive(&mut self) {
        self.shared_receives = self.shared_receives.saturating_sub(1);
    }

    pub(super) fn attributes(&self, llp: Option<super::LlpHandle>) -> QpAttributes {
        QpAttributes {
            id: self.id,
            init: self.init,
            privileged: self.privileged,
            state: self.state,
            rq_limit_armed: self.rq_limit_armed,
            terminate: self.terminate.filter(|_| matches!(self.state, QpState::Terminate | QpState::Error)),
            llp,
        }
    }

    pub(super) fn allocated(&self) -> QpAllocated {
        QpAllocated {
            max_sq_wrs: self.init.max_sq_wrs,
            max_rq_wrs: self.srq.is_none().then_some(self.init.max_rq_wrs),
            max_send_sges: self.init.max_send_sges,
            max_write_sges: self.init.max_write_sges,
            max_receive_sges: self.srq.is_none().then_some(self.init.max_receive_sges),
            ord: self.init.ord,
            ird: self.init.ird,
        }
    }
}

/// Attributes that Modify QP changes.
impl Qp {
    /// Checks whether the transition and all new values are allowed. Changes nothing
    /// (VERBS-6.1.3-5).
    pub(super) fn check_modify(&self, modify: &QpModify, settings: &RnicSettings) -> Result<(), QpError> {
        let transition = transition_of(self.state, modify.next).ok_or(QpError::InvalidStateChange)?;
        for attribute in modify.given() {
            let allowed = [transition.required, transition.supported, transition.optional];
            reject_if(!allowed.iter().any(|list| list.contains(&attribute)), QpError::CannotChangeAttribute)?;
        }
        let missing = transition.required.iter().any(|required| !modify.given().any(|given| given == *required));
        reject_if(missing, QpError::InvalidModifier)?;
        let resizes = modify.max_sq_wrs.is_some() || modify.max_rq_wrs.is_some();
        let raises_ord = modify.ord.is_some_and(|ord| ord > self.init.ord);
        reject_if(modify.ird.is_some() && !settings.modifies_ird, QpError::CannotChangeAttribute)?;
        reject_if(raises_ord && !settings.raises_ord, QpError::CannotChangeAttribute)?;
        reject_if(resizes && !settings.resizes_queues, QpError::CannotChangeAttribute)?;
        reject_if(modify.ord.is_some_and(|ord| ord > settings.max_ord), QpError::OrdExceeds)?;
        reject_if(modify.ird.is_some_and(|ird| ird > settings.max_ird), QpError::IrdExceeds)?;
        let sizes = [(modify.max_sq_wrs, self.sq.used), (modify.max_rq_wrs, self.receives_used)];
        for (size, used) in sizes {
            let Some(size) = size else { continue };
            reject_if(size > settings.max_wrs, QpError::TooManyWrs)?;
            reject_if(size < used, QpError::ShrinkFailed)?;
        }
        Ok(())
    }

    /// Sets attributes that `check_modify` has checked. If the Queue Pair has an S-RQ, the size of
    /// the RQ is ignored (draft Figure 5, footnote 2).
    pub(super) fn change_attributes(&mut self, modify: &QpModify, ird: u32, ord: u32) {
        let init = &mut self.init;
        (init.ird, init.ord) = (ird, ord);
        (self.ird, self.ord) = (ird, ord);
        init.max_sq_wrs = modify.max_sq_wrs.unwrap_or(init.max_sq_wrs);
        self.sq.capacity = init.max_sq_wrs;
        if self.srq.is_none() {
            init.max_rq_wrs = modify.max_rq_wrs.unwrap_or(init.max_rq_wrs);
        }
        if let Some(limit) = modify.rq_limit {
            init.rq_limit = limit;
            self.rq_limit_armed = limit > 0;
        }
    }
}

/// PostSQ and PostRQ for one Work Request at a time.
impl Qp {
    pub(super) fn post_send(&mut self, wr: SendWr) -> Result<(), PostStatus> {
        self.check_state()?;
        self.check_operation(&wr)?;
        reject_if(self.sq.used >= self.sq.capacity, PostStatus::TooManyWrs)?;
        self.sq.push(wr);
        Ok(())
    }

    pub(super) fn post_receive(&mut self, wr: ReceiveWr) -> Result<(), PostStatus> {
        reject_if(self.srq.is_some(), PostStatus::RqAssociatedWithSrq)?;
        self.check_state()?;
        check_list(&wr.scatter, self.init.max_receive_sges)?;
        reject_if(self.receives_used >= self.init.max_rq_wrs, PostStatus::TooManyWrs)?;
        self.receives_used += 1;
        self.receives.push_back(wr);
        Ok(())
    }

    fn check_state(&self) -> Result<(), PostStatus> {
        table::find(self.state, table::QpEvent::Post).map(|_| ()).ok_or(PostStatus::InvalidQpState)
    }

    fn check_operation(&self, wr: &SendWr) -> Result<(), PostStatus> {
        let fence_fits = match (&wr.operation, wr.fence) {
            (_, Fence::None)
            | (Operation::Send { .. } | Operation::Write { .. } | Operation::Immediate { .. }, Fence::Read)
            | (Operation::InvalidateLocal(_), Fence::Local) => true,
            (_, Fence::Read | Fence::Local) => false,
        };
        reject_if(!fence_fits, PostStatus::InvalidModifier)?;
        match &wr.operation {
            Operation::Send { payload, .. } => check_payload(payload, self.init.max_send_sges),
            Operation::Write { payload, .. } => check_payload(payload, self.init.max_write_sges),
            Operation::Read { local, invalidate_local: true, .. } if local.stag == STAG_ZERO => {
                Err(PostStatus::InvalidModifier)
            }
            Operation::Bind(_) if !self.init.bind => Err(PostStatus::InvalidOperation),
            Operation::Immediate { .. }
            | Operation::Read { .. }
            | Operation::Atomic { .. }
            | Operation::Bind(_)
            | Operation::FastRegister(_)
            | Operation::InvalidateLocal(_) => Ok(()),
        }
    }
}

fn check_payload(payload: &Payload, max_sges: u32) -> Result<(), PostStatus> {
    match payload {
        Payload::Gather(sges) => check_list(sges, max_sges),
        Payload::Inline(octets) if u32::try_from(octets.len()).is_err() => Err(PostStatus::InvalidSglLength),
        Payload::Inline(_) => Ok(()),
    }
}

pub(super) fn check_list(sges: &[super::work_request::Sge], max_sges: u32) -> Result<(), PostStatus> {
    reject_if(sges.len() > max_sges as usize, PostStatus::InvalidSglFormat)?;
    reject_if(length(sges) > u64::from(u32::MAX), PostStatus::InvalidSglLength)
}
