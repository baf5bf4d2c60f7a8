//! CQ, S-RQ and QP verbs (draft sections 9.2.3 to 9.2.5 and 9.3).

use super::cq::{Cq, CqAttributes, Frees, NotifyKind};
use super::error::{CqError, EventError, PostError, PostStatus, QpError, SrqError};
use super::qp::table::{QpEvent, QpState};
use super::qp::{Cause, Context, Qp, QpAllocated, QpAttributes, QpInit, QpModify, check_list};
use super::rnic::{Privileged, Rnic};
use super::slab::Key;
use super::srq::{Srq, SrqAttributes, SrqInit, SrqModify};
use super::work_request::{ReceiveWr, SendWr};
use super::{CompletionHandlerId, CqHandle, EventId, LlpHandle, QpHandle, SrqHandle, WorkCompletion};
use crate::memory::QpId;
use crate::time::Instant;

/// Completion Queues.
impl Rnic {
    /// Create CQ, of `entries` entries; gives how many it has.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `TooManyEntries`, `InvalidHandler`, `InsufficientResources`.
    pub fn create_cq(
        &mut self,
        entries: u32,
        handler: Option<CompletionHandlerId>,
    ) -> Result<(CqHandle, u32), CqError> {
        if !self.open {
            return Err(CqError::InvalidRnicHandle);
        }
        if entries > self.shared.settings.max_cqes {
            return Err(CqError::TooManyEntries);
        }
        if handler.is_some_and(|handler| !self.shared.handlers.contains_key(&handler)) {
            return Err(CqError::InvalidHandler);
        }
        let key = self.shared.cqs.insert(Cq::new(entries, handler)).ok_or(CqError::InsufficientResources)?;
        Ok((CqHandle { rnic: self.shared.id, key }, entries))
    }

    /// Query CQ.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`.
    pub fn query_cq(&self, cq: CqHandle) -> Result<CqAttributes, CqError> {
        let cq = self.shared.cqs.get(self.cq_key(cq)?).ok_or(CqError::InvalidCqHandle)?;
        Ok(CqAttributes { entries: cq.capacity, handler: cq.handler })
    }

    /// Modify CQ: another number of entries, with completions on it or not. No completion is lost.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`, `TooManyEntries`, `ShrinkFailed`.
    pub fn modify_cq(&mut self, cq: CqHandle, entries: u32) -> Result<u32, CqError> {
        let max = self.shared.settings.max_cqes;
        let cq = self.cq_mut(cq)?;
        if entries > max {
            return Err(CqError::TooManyEntries);
        }
        if cq.entries.len() > entries as usize {
            return Err(CqError::ShrinkFailed);
        }
        cq.capacity = entries;
        Ok(entries)
    }

    /// Destroy CQ. Completions on it are gone.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`, `InUse`.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        if self.cq_mut(cq)?.queues > 0 {
            return Err(CqError::InUse);
        }
        self.shared.cqs.remove(cq.key);
        Ok(())
    }

    /// Poll for Completion: the oldest one. Its work request's place in the queue is free then.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`, `Empty`.
    pub fn poll_cq(&mut self, cq: CqHandle) -> Result<WorkCompletion, CqError> {
        let cqe = self.cq_mut(cq)?.entries.pop_front().ok_or(CqError::Empty)?;
        let qp = self.qps.get_mut(cqe.qp);
        match cqe.frees {
            Frees::Sq => qp.into_iter().for_each(Qp::free_send_slot),
            Frees::Rq => qp.into_iter().for_each(Qp::free_receive_slot),
            Frees::Srq(srq) => {
                qp.into_iter().for_each(Qp::free_shared_receive);
                if let Some(srq) = self.shared.srqs.get_mut(srq) {
                    srq.used = srq.used.saturating_sub(1);
                }
            }
        }
        Ok(cqe.completion)
    }

    /// Request Completion Notification: the CQ's handler is called once, for a completion that comes from now on.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`.
    pub fn request_completion_notification(&mut self, cq: CqHandle, kind: NotifyKind) -> Result<(), EventError> {
        let cq = self.cq_mut(cq).map_err(|error| match error {
            CqError::InvalidRnicHandle => EventError::InvalidRnicHandle,
            _ => EventError::InvalidCqHandle,
        })?;
        cq.arm(kind);
        Ok(())
    }

    fn cq_key(&self, cq: CqHandle) -> Result<Key, CqError> {
        if !self.open {
            return Err(CqError::InvalidRnicHandle);
        }
        if cq.rnic == self.shared.id { Ok(cq.key) } else { Err(CqError::InvalidCqHandle) }
    }

    fn cq_mut(&mut self, cq: CqHandle) -> Result<&mut Cq, CqError> {
        let key = self.cq_key(cq)?;
        self.shared.cqs.get_mut(key).ok_or(CqError::InvalidCqHandle)
    }
}

/// Shared Receive Queues.
impl Rnic {
    /// Create S-RQ.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `TooManyWrs`, `TooManySges`, `LimitOutOfRange`, `InsufficientResources`.
    pub fn create_srq(&mut self, init: SrqInit) -> Result<(SrqHandle, SrqAttributes), SrqError> {
        if !self.open {
            return Err(SrqError::InvalidRnicHandle);
        }
        let settings = &self.shared.settings;
        if init.max_wrs > settings.max_srq_wrs {
            return Err(SrqError::TooManyWrs);
        }
        if init.max_sges > settings.max_sges {
            return Err(SrqError::TooManySges);
        }
        if init.limit > init.max_wrs {
            return Err(SrqError::LimitOutOfRange);
        }
        self.shared.memory.join_pd(init.pd).map_err(|_| SrqError::InvalidPdId)?;
        let srq = Srq::new(init);
        let attributes = srq.attributes;
        let Some(key) = self.shared.srqs.insert(srq) else {
            self.shared.memory.leave_pd(init.pd);
            return Err(SrqError::InsufficientResources);
        };
        Ok((SrqHandle { rnic: self.shared.id, key }, attributes))
    }

    /// Query S-RQ.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidSrqHandle`.
    pub fn query_srq(&self, srq: SrqHandle) -> Result<SrqAttributes, SrqError> {
        let key = self.srq_key(srq)?;
        self.shared.srqs.get(key).map(|srq| srq.attributes).ok_or(SrqError::InvalidSrqHandle)
    }

    /// Modify S-RQ; gives how many work requests it holds.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidSrqHandle`, `TooManyWrs`, `ShrinkFailed`, `LimitOutOfRange` (of a new limit),
    /// `InvalidModifier` (of a new size below a limit that is armed). Nothing is changed then.
    pub fn modify_srq(&mut self, srq: SrqHandle, modify: SrqModify) -> Result<u32, SrqError> {
        let max = self.shared.settings.max_srq_wrs;
        let srq = self.srq_mut(srq)?;
        let max_wrs = modify.max_wrs.unwrap_or(srq.attributes.max_wrs);
        if max_wrs > max {
            return Err(SrqError::TooManyWrs);
        }
        if max_wrs < srq.used {
            return Err(SrqError::ShrinkFailed);
        }
        match modify.limit {
            Some(limit) if limit > max_wrs => return Err(SrqError::LimitOutOfRange),
            None if srq.attributes.armed && srq.attributes.limit > max_wrs => return Err(SrqError::InvalidModifier),
            Some(limit) => (srq.attributes.limit, srq.attributes.armed) = (limit, limit > 0),
            None => {}
        }
        srq.attributes.max_wrs = max_wrs;
        Ok(max_wrs)
    }

    /// Destroy S-RQ, with receives posted or not.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidSrqHandle`, `QpsStillAssociated`.
    pub fn destroy_srq(&mut self, srq: SrqHandle) -> Result<(), SrqError> {
        let found = self.srq_mut(srq)?;
        if found.qps > 0 {
            return Err(SrqError::QpsStillAssociated);
        }
        let pd = found.attributes.pd;
        self.shared.srqs.remove(srq.key);
        self.shared.memory.leave_pd(pd);
        Ok(())
    }

    /// PostRQ to an S-RQ. Gives how many were posted: all of them.
    ///
    /// # Errors
    /// The first work request that is not accepted, and why; those before it are posted.
    pub fn post_srq(&mut self, srq: SrqHandle, list: Vec<ReceiveWr>) -> Result<usize, PostError> {
        let status = |error| match error {
            SrqError::InvalidRnicHandle => PostStatus::InvalidRnicHandle,
            _ => PostStatus::InvalidSrqHandle,
        };
        let srq = self.srq_mut(srq).map_err(|error| PostError { posted: 0, status: status(error) })?;
        post_each(list, |wr| {
            check_list(&wr.scatter, srq.attributes.max_sges)?;
            if srq.used >= srq.attributes.max_wrs {
                return Err(PostStatus::TooManyWrs);
            }
            srq.used += 1;
            srq.posted.push_back(wr);
            Ok(())
        })
    }

    fn srq_key(&self, srq: SrqHandle) -> Result<Key, SrqError> {
        if !self.open {
            return Err(SrqError::InvalidRnicHandle);
        }
        if srq.rnic == self.shared.id { Ok(srq.key) } else { Err(SrqError::InvalidSrqHandle) }
    }

    fn srq_mut(&mut self, srq: SrqHandle) -> Result<&mut Srq, SrqError> {
        let key = self.srq_key(srq)?;
        self.shared.srqs.get_mut(key).ok_or(SrqError::InvalidSrqHandle)
    }
}

/// Queue Pairs.
impl Rnic {
    /// Create QP, in Idle. `privileged` enables STag 0 and Fast-Register.
    ///
    /// # Errors
    /// Draft Figure 32, Create QP; there is no Queue Pair then.
    pub fn create_qp(
        &mut self,
        init: QpInit,
        privileged: Option<&Privileged>,
    ) -> Result<(QpHandle, QpId, QpAllocated), QpError> {
        if !self.open {
            return Err(QpError::InvalidRnicHandle);
        }
        let settings = self.shared.settings;
        if init.ord > settings.max_ord {
            return Err(QpError::OrdExceeds);
        }
        if init.ird > settings.max_ird {
            return Err(QpError::IrdExceeds);
        }
        let with_rq = init.srq.is_none();
        if init.max_sq_wrs > settings.max_wrs || with_rq && init.max_rq_wrs > settings.max_wrs {
            return Err(QpError::TooManyWrs);
        }
        let receive_sges = if with_rq { init.max_receive_sges } else { 0 };
        if [init.max_send_sges, init.max_write_sges, receive_sges].iter().any(|sges| *sges > settings.max_sges) {
            return Err(QpError::TooManySges);
        }
        for cq in [init.sq_cq, init.rq_cq] {
            let key = self.cq_key(cq).map_err(|_| QpError::InvalidCqHandle)?;
            self.shared.cqs.get(key).ok_or(QpError::InvalidCqHandle)?;
        }
        let srq = match init.srq {
            None => None,
            Some(srq) => {
                let attributes = self.query_srq(srq).map_err(|_| QpError::InvalidSrqHandle)?;
                if init.rq_limit > attributes.max_wrs {
                    return Err(QpError::RqLimitOutOfRange);
                }
                Some((srq.key, attributes.pd))
            }
        };
        self.shared.memory.join_pd(init.pd).map_err(|_| QpError::InvalidPdId)?;
        let (id, rnic) = (QpId(self.next_qp), self.shared.id);
        let privileged = self.is_privileged(privileged);
        // The handle has the key of the place that it goes to.
        let placeholder = QpHandle { rnic, key: init.sq_cq.key };
        let qp = Qp::new(placeholder, id, init, (init.sq_cq.key, init.rq_cq.key), srq, privileged);
        let allocated = qp.allocated();
        let Some(key) = self.qps.insert(qp) else {
            self.shared.memory.leave_pd(init.pd);
            return Err(QpError::InsufficientResources);
        };
        let handle = QpHandle { rnic, key };
        self.next_qp = self.next_qp.wrapping_add(1);
        if let Some(qp) = self.qps.get_mut(key) {
            qp.handle = handle;
        }
        for cq in [init.sq_cq, init.rq_cq] {
            if let Some(cq) = self.shared.cqs.get_mut(cq.key) {
                cq.queues += 1;
            }
        }
        if let Some(srq) = srq.and_then(|(key, _)| self.shared.srqs.get_mut(key)) {
            srq.qps += 1;
        }
        Ok((handle, id, allocated))
    }

    /// Query QP.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidQpHandle`.
    pub fn query_qp(&self, qp: QpHandle) -> Result<QpAttributes, QpError> {
        let key = self.qp_key(qp)?;
        let qp = self.qps.get(key).ok_or(QpError::InvalidQpHandle)?;
        Ok(qp.attributes(qp.llp.map(|key| LlpHandle { rnic: self.shared.id, key })))
    }

    /// Modify QP: attributes first, then the state. A success means that the state was reached; it may have been left again.
    ///
    /// # Errors
    /// Draft Figure 32, Modify QP; nothing is changed then.
    pub fn modify_qp(&mut self, now: Instant, qp: QpHandle, modify: &QpModify) -> Result<QpAllocated, QpError> {
        let key = self.qp_key(qp)?;
        let settings = self.shared.settings;
        let found = self.qps.get_mut(key).ok_or(QpError::InvalidQpHandle)?;
        found.check_modify(modify, &settings)?;
        if let Some(limit) = modify.rq_limit {
            let srq = found.srq.and_then(|key| self.shared.srqs.get(key)).ok_or(QpError::CannotChangeAttribute)?;
            if limit > srq.attributes.max_wrs {
                return Err(QpError::RqLimitOutOfRange);
            }
        }
        let starts = found.state == QpState::Idle && modify.next == QpState::Rts;
        let mut early = Vec::new();
        if starts {
            let llp = modify.llp.filter(|llp| llp.rnic == self.shared.id).ok_or(QpError::InvalidLlpStreamHandle)?;
            let stream = self.llps.get_mut(llp.key).filter(|llp| llp.is_usable());
            let stream = stream.ok_or(QpError::InvalidLlpStreamHandle)?;
            stream.qp = Some(key);
            stream.raw.extend(modify.stream_message.clone());
            early = std::mem::take(&mut stream.early);
            found.attach(llp.key, stream.settings.mulpdu(), stream.settings.version, settings.extensions);
            stream.say_ready().into_iter().for_each(|kind| found.skip_outbound(kind));
        }
        found.change_attributes(modify);
        let allocated = found.allocated();
        let mut context =
            Context { now, shared: &mut self.shared, llp: found.llp.and_then(|llp| self.llps.get_mut(llp)), qp: found };
        if modify.next == QpState::Closing && !context.qp.is_at_rest() {
            context.react(QpEvent::Modify(QpState::Closing), Cause::default());
            context.react(QpEvent::WorkLeft, Cause::event(EventId::BadClose));
        } else {
            context.react(QpEvent::Modify(modify.next), Cause::default());
        }
        if let Some(llp) = modify.llp.filter(|_| starts) {
            self.handle_octets(now, llp, &early);
        }
        Ok(allocated)
    }

    /// Destroy QP, in any state and with work posted or not. Its completions that were not polled are gone; a stream is reset.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidQpHandle`, `WindowsStillBound`.
    pub fn destroy_qp(&mut self, qp: QpHandle) -> Result<(), QpError> {
        let key = self.qp_key(qp)?;
        let found = self.qps.get(key).ok_or(QpError::InvalidQpHandle)?;
        if self.shared.memory.windows_bound_to(found.id) > 0 {
            return Err(QpError::WindowsStillBound);
        }
        let Some(qp) = self.qps.remove(key) else { return Err(QpError::InvalidQpHandle) };
        self.shared.memory.leave_pd(qp.init.pd);
        if let Some(llp) = qp.llp.and_then(|llp| self.llps.get_mut(llp)) {
            llp.qp = None;
            llp.want_reset();
        }
        for cq in [qp.sq_cq, qp.rq_cq] {
            if let Some(cq) = self.shared.cqs.get_mut(cq) {
                cq.queues -= 1;
                cq.entries.retain(|cqe| {
                    // The S-RQ's place is free: nobody will poll for it.
                    if cqe.qp == key
                        && let Frees::Srq(srq) = cqe.frees
                        && let Some(srq) = self.shared.srqs.get_mut(srq)
                    {
                        srq.used = srq.used.saturating_sub(1);
                    }
                    cqe.qp != key
                });
            }
        }
        if let Some(srq) = qp.srq.and_then(|srq| self.shared.srqs.get_mut(srq)) {
            srq.qps -= 1;
            srq.used = srq.used.saturating_sub(u32::from(qp.is_receiving()));
        }
        Ok(())
    }

    /// PostSQ: a list of work requests, in order. Gives how many were posted: all of them. The driver of the Queue Pair's stream
    /// asks for what goes out by [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    /// The first work request that is not accepted, and why; those before it are posted.
    pub fn post_send(&mut self, qp: QpHandle, list: Vec<SendWr>) -> Result<usize, PostError> {
        let qp = self.qp_to_post(qp)?;
        post_each(list, |wr| qp.post_send(wr))
    }

    /// PostRQ to a Queue Pair without S-RQ. Gives how many were posted: all of them.
    ///
    /// # Errors
    /// The first work request that is not accepted, and why; those before it are posted.
    pub fn post_receive(&mut self, qp: QpHandle, list: Vec<ReceiveWr>) -> Result<usize, PostError> {
        let qp = self.qp_to_post(qp)?;
        post_each(list, |wr| qp.post_receive(wr))
    }

    fn qp_to_post(&mut self, qp: QpHandle) -> Result<&mut Qp, PostError> {
        let failed = |status| PostError { posted: 0, status };
        let key = self.qp_key(qp).map_err(|error| match error {
            QpError::InvalidRnicHandle => failed(PostStatus::InvalidRnicHandle),
            _ => failed(PostStatus::InvalidQpHandle),
        })?;
        self.qps.get_mut(key).ok_or(failed(PostStatus::InvalidQpHandle))
    }

    fn qp_key(&self, qp: QpHandle) -> Result<Key, QpError> {
        if !self.open {
            return Err(QpError::InvalidRnicHandle);
        }
        if qp.rnic == self.shared.id { Ok(qp.key) } else { Err(QpError::InvalidQpHandle) }
    }
}

fn post_each<T>(list: Vec<T>, mut post: impl FnMut(T) -> Result<(), PostStatus>) -> Result<usize, PostError> {
    let length = list.len();
    for (posted, wr) in list.into_iter().enumerate() {
        post(wr).map_err(|status| PostError { posted, status })?;
    }
    Ok(length)
}
