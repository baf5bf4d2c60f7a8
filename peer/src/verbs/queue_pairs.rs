//! Queue Pair verbs (draft-hilland-rddp-verbs sections 9.2.5 and 9.3.1).

use super::cq::FreedSlot;
use super::error::{PostError, PostStatus, QpError};
use super::qp::table::{QpEvent, QpState};
use super::qp::{Cause, Context, Qp, QpAllocated, QpAttributes, QpInit, QpModify};
use super::rnic::{Privileged, Rnic};
use super::slab::Key;
use super::work_request::{Fence, ReceiveWr, SendWr};
use super::{EventId, LlpHandle, QpHandle};
use crate::hostile::{self, Conduct};
use crate::memory::QpId;
use crate::reject::reject_if;
use crate::time::Instant;

/// Queue Pairs.
impl Rnic {
    /// Create QP: creates a Queue Pair in Idle. `privileged` enables STag 0 and Fast-Register.
    ///
    /// # Errors
    /// The errors of draft Figure 32 for Create QP. After an error, no Queue Pair was created.
    pub fn create_qp(
        &mut self,
        init: QpInit,
        privileged: Option<&Privileged>,
    ) -> Result<(QpHandle, QpId, QpAllocated), QpError> {
        reject_if(!self.open, QpError::InvalidRnicHandle)?;
        let settings = self.shared.settings;
        reject_if(init.ord > settings.max_ord, QpError::OrdExceeds)?;
        reject_if(init.ird > settings.max_ird, QpError::IrdExceeds)?;
        let with_rq = init.srq.is_none();
        let receive_wrs = if with_rq { init.max_rq_wrs } else { 0 };
        reject_if(init.max_sq_wrs.max(receive_wrs) > settings.max_wrs, QpError::TooManyWrs)?;
        let receive_sges = if with_rq { init.max_receive_sges } else { 0 };
        reject_if(init.max_send_sges.max(receive_sges) > settings.max_sges, QpError::TooManySges)?;
        reject_if(init.max_write_sges > settings.max_write_sges, QpError::TooManySges)?;
        for cq in [init.sq_cq, init.rq_cq] {
            self.query_cq(cq).map_err(|_| QpError::InvalidCqHandle)?;
        }
        let mut srq = None;
        if let Some(handle) = init.srq {
            let attributes = self.query_srq(handle).map_err(|_| QpError::InvalidSrqHandle)?;
            reject_if(init.rq_limit > attributes.max_wrs, QpError::RqLimitOutOfRange)?;
            srq = Some((handle.key, attributes.pd));
        }
        self.shared.memory.add_pd_member(init.pd).map_err(|_| QpError::InvalidPdId)?;
        let taken = self.shared.reads.take(init.ird, init.ord);
        let (ird, ord) = taken.inspect_err(|_| self.shared.memory.remove_pd_member(init.pd))?;
        let init = QpInit { ird, ord, ..init };
        let (id, rnic) = (QpId(self.next_qp), self.shared.id);
        let privileged = privileged.is_some_and(|privileged| privileged.0 == rnic);
        // The real handle needs the key that `insert` returns. After `insert`, the real handle
        // replaces this placeholder.
        let placeholder = QpHandle { rnic, key: init.sq_cq.key };
        let qp = Qp::new(placeholder, id, init, (init.sq_cq.key, init.rq_cq.key), srq, privileged);
        let allocated = qp.allocated();
        let Some(key) = self.qps.insert(qp) else {
            self.shared.memory.remove_pd_member(init.pd);
            self.shared.reads.give_back(ird, ord);
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

    /// Query QP: returns the attributes of a Queue Pair.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidQpHandle`.
    pub fn query_qp(&self, qp: QpHandle) -> Result<QpAttributes, QpError> {
        let key = self.qp_key(qp)?;
        let qp = self.qps.get(key).ok_or(QpError::InvalidQpHandle)?;
        Ok(qp.attributes(qp.llp.map(|key| LlpHandle { rnic: self.shared.id, key })))
    }

    /// The stream of a Queue Pair, if the Queue Pair has a stream. Query QP also returns the
    /// stream.
    #[must_use]
    pub fn stream_of(&self, qp: QpHandle) -> Option<LlpHandle> {
        let key = self.qps.get(self.qp_key(qp).ok()?)?.llp?;
        Some(LlpHandle { rnic: self.shared.id, key })
    }

    /// Modify QP: changes the attributes, and then the state. Success means that the Queue Pair
    /// reached the requested state. When the verb returns, the Queue Pair can already be in a later
    /// state.
    ///
    /// # Errors
    /// The errors of draft Figure 32 for Modify QP. An error changes nothing.
    pub fn modify_qp(&mut self, now: Instant, qp: QpHandle, modify: &QpModify) -> Result<QpAllocated, QpError> {
        let key = self.qp_key(qp)?;
        let settings = self.shared.settings;
        let found = self.qps.get_mut(key).ok_or(QpError::InvalidQpHandle)?;
        found.check_modify(modify, &settings)?;
        if let Some(limit) = modify.rq_limit {
            let srq = found.srq.and_then(|key| self.shared.srqs.get(key)).ok_or(QpError::CannotChangeAttribute)?;
            reject_if(limit > srq.attributes.max_wrs, QpError::RqLimitOutOfRange)?;
        }
        let starts = found.state == QpState::Idle && modify.next == QpState::Rts;
        let mut stream = None;
        if starts {
            let llp = modify.llp.filter(|llp| llp.rnic == self.shared.id).ok_or(QpError::InvalidLlpStreamHandle)?;
            let usable = self.llps.get_mut(llp.key).filter(|llp| llp.is_usable());
            stream = Some((llp, usable.ok_or(QpError::InvalidLlpStreamHandle)?));
        }
        let had = (found.init.ird, found.init.ord);
        let wanted = (modify.ird.unwrap_or(had.0), modify.ord.unwrap_or(had.1));
        self.shared.reads.give_back(had.0, had.1);
        let (ird, ord) = match self.shared.reads.take(wanted.0, wanted.1) {
            Ok(given) => given,
            Err(error) => {
                // `take` cannot fail, because the same amounts were just returned to the pools.
                let _ = self.shared.reads.take(had.0, had.1);
                return Err(error);
            }
        };
        found.change_attributes(modify, ird, ord);
        let mut early = Vec::new();
        if let Some((llp, stream)) = stream {
            stream.qp = Some(key);
            stream.raw.extend(modify.stream_message.clone());
            early = std::mem::take(&mut stream.early);
            found.attach(llp.key, stream.settings.mulpdu(), stream.settings.version, &self.shared);
            stream.send_ready().into_iter().for_each(|kind| found.skip_outbound(kind));
        }
        let allocated = found.allocated();
        let mut context =
            Context { now, shared: &mut self.shared, llp: found.llp.and_then(|llp| self.llps.get_mut(llp)), qp: found };
        if modify.next == QpState::Closing && !context.qp.is_idle() {
            context.react(QpEvent::Modify(QpState::Closing), Cause::default());
            context.react(QpEvent::WorkLeft, Cause::event(EventId::BadClose));
        } else {
            context.react(QpEvent::Modify(modify.next), Cause::default());
        }
        if starts && hostile::hook::conduct(&context.shared.deviations).completes_startup {
            context.complete_startup();
        }
        if let Some(llp) = modify.llp.filter(|_| starts) {
            self.handle_octets(now, llp, &early);
        }
        Ok(allocated)
    }

    /// Destroy QP: removes a Queue Pair. The Queue Pair can be in any state, with or without posted
    /// work. Completions that were not polled are lost. The stream of the Queue Pair is reset.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidQpHandle`, `WindowsStillBound`.
    pub fn destroy_qp(&mut self, qp: QpHandle) -> Result<(), QpError> {
        let key = self.qp_key(qp)?;
        let found = self.qps.get(key).ok_or(QpError::InvalidQpHandle)?;
        reject_if(self.shared.memory.windows_bound_to(found.id) > 0, QpError::WindowsStillBound)?;
        let Some(qp) = self.qps.remove(key) else { return Err(QpError::InvalidQpHandle) };
        self.shared.memory.remove_pd_member(qp.init.pd);
        self.shared.reads.give_back(qp.init.ird, qp.init.ord);
        if let Some(llp) = qp.llp.and_then(|llp| self.llps.get_mut(llp)) {
            llp.qp = None;
            llp.want_reset();
        }
        for cq in [qp.sq_cq, qp.rq_cq] {
            if let Some(cq) = self.shared.cqs.get_mut(cq) {
                cq.queues -= 1;
                cq.entries.retain(|cqe| {
                    // Free the slot of the S-RQ, because the completion will not be polled.
                    if cqe.qp == key
                        && let FreedSlot::Srq(srq) = cqe.frees
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

    /// PostSQ: posts a list of Work Requests in order. Returns the number of posted Work Requests,
    /// which is the length of the list. The driver of the Queue Pair's stream then has to call
    /// [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    /// The first rejected Work Request and the reason. The Work Requests before the rejected Work
    /// Request are posted.
    pub fn post_send(&mut self, qp: QpHandle, list: impl IntoIterator<Item = SendWr>) -> Result<usize, PostError> {
        let Conduct { swallows_late_posts: swallows, overlooks_fence, .. } =
            hostile::hook::conduct(&self.shared.deviations);
        let qp = self.qp_to_post(qp)?;
        if swallows && qp.state != QpState::Rts {
            return Ok(list.into_iter().count());
        }
        post_each(list, |mut wr: SendWr| {
            if overlooks_fence && wr.fence == Fence::Read {
                wr.fence = Fence::None;
            }
            qp.post_send(wr)
        })
    }

    /// PostRQ: posts a list of receives to a Queue Pair without S-RQ. Returns the number of posted
    /// Work Requests, which is the length of the list.
    ///
    /// # Errors
    /// The first rejected Work Request and the reason. The Work Requests before the rejected Work
    /// Request are posted.
    pub fn post_receive(
        &mut self,
        qp: QpHandle,
        list: impl IntoIterator<Item = ReceiveWr>,
    ) -> Result<usize, PostError> {
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

    pub(super) fn qp_key(&self, qp: QpHandle) -> Result<Key, QpError> {
        reject_if(!self.open, QpError::InvalidRnicHandle)?;
        if qp.rnic == self.shared.id { Ok(qp.key) } else { Err(QpError::InvalidQpHandle) }
    }
}

pub(super) fn post_each<T>(
    list: impl IntoIterator<Item = T>,
    mut post: impl FnMut(T) -> Result<(), PostStatus>,
) -> Result<usize, PostError> {
    let mut posted = 0;
    for wr in list {
        post(wr).map_err(|status| PostError { posted, status })?;
        posted += 1;
    }
    Ok(posted)
}
