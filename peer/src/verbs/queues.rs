//! Verbs for CQs and S-RQs (draft-hilland-rddp-verbs sections 9.2.3, 9.2.4 and 9.3). The module
//! `queue_pairs` has the verbs for Queue Pairs.

use super::cq::{Cq, CqAttributes, FreedSlot, NotifyKind};
use super::error::{CqError, EventError, PostError, PostStatus, SrqError};
use super::qp::{Qp, check_list};
use super::queue_pairs::post_each;
use super::rnic::Rnic;
use super::slab::Key;
use super::srq::{Srq, SrqAttributes, SrqInit, SrqModify};
use super::work_request::ReceiveWr;
use super::{CompletionHandlerId, CqHandle, SrqHandle, WorkCompletion};
use crate::reject::reject_if;

/// Completion Queues.
impl Rnic {
    /// Create CQ: creates a CQ with `entries` entries. Returns the handle and the number of
    /// entries.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `TooManyEntries`, `InvalidHandler`, `InsufficientResources`.
    pub fn create_cq(
        &mut self,
        entries: u32,
        handler: Option<CompletionHandlerId>,
    ) -> Result<(CqHandle, u32), CqError> {
        reject_if(!self.open, CqError::InvalidRnicHandle)?;
        reject_if(entries > self.shared.settings.max_cqes, CqError::TooManyEntries)?;
        let unknown = handler.is_some_and(|handler| !self.shared.handlers.contains_key(&handler));
        reject_if(unknown, CqError::InvalidHandler)?;
        let key = self.shared.cqs.insert(Cq::new(entries, handler)).ok_or(CqError::InsufficientResources)?;
        Ok((CqHandle { rnic: self.shared.id, key }, entries))
    }

    /// Query CQ: returns the attributes of a CQ.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`.
    pub fn query_cq(&self, cq: CqHandle) -> Result<CqAttributes, CqError> {
        let cq = self.shared.cqs.get(self.cq_key(cq)?).ok_or(CqError::InvalidCqHandle)?;
        Ok(CqAttributes { entries: cq.capacity, handler: cq.handler })
    }

    /// Modify CQ: changes the number of entries, even if the CQ has completions. No completion is
    /// lost.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`, `TooManyEntries`, `ShrinkFailed`.
    pub fn modify_cq(&mut self, cq: CqHandle, entries: u32) -> Result<u32, CqError> {
        let max = self.shared.settings.max_cqes;
        let cq = self.cq_mut(cq)?;
        reject_if(entries > max, CqError::TooManyEntries)?;
        reject_if(cq.entries.len() > entries as usize, CqError::ShrinkFailed)?;
        cq.capacity = entries;
        Ok(entries)
    }

    /// Destroy CQ: removes a CQ. Its completions are lost.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`, `InUse`.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        reject_if(self.cq_mut(cq)?.queues > 0, CqError::InUse)?;
        self.shared.cqs.remove(cq.key);
        Ok(())
    }

    /// Poll for Completion: removes and returns the oldest completion. This frees the slot that the
    /// completed Work Request occupies in its queue.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`, `Empty`.
    pub fn poll_cq(&mut self, cq: CqHandle) -> Result<WorkCompletion, CqError> {
        let cqe = self.cq_mut(cq)?.entries.pop_front().ok_or(CqError::Empty)?;
        let qp = self.qps.get_mut(cqe.qp);
        match cqe.frees {
            FreedSlot::Sq => qp.into_iter().for_each(Qp::free_send_slot),
            FreedSlot::Rq => qp.into_iter().for_each(Qp::free_receive_slot),
            FreedSlot::Srq(srq) => {
                qp.into_iter().for_each(Qp::free_shared_receive);
                if let Some(srq) = self.shared.srqs.get_mut(srq) {
                    srq.used = srq.used.saturating_sub(1);
                }
            }
        }
        Ok(cqe.completion)
    }

    /// Request Completion Notification: the RNIC calls the handler of the CQ once, for the next new
    /// completion that matches `kind`.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidCqHandle`.
    pub fn request_completion_notification(&mut self, cq: CqHandle, kind: NotifyKind) -> Result<(), EventError> {
        let any = crate::hostile::hook::conduct(&self.shared.deviations).notifies_unsolicited;
        let kind = if any { NotifyKind::NextCompletion } else { kind };
        let cq = self.cq_mut(cq).map_err(|error| match error {
            CqError::InvalidRnicHandle => EventError::InvalidRnicHandle,
            _ => EventError::InvalidCqHandle,
        })?;
        cq.arm(kind);
        Ok(())
    }

    fn cq_key(&self, cq: CqHandle) -> Result<Key, CqError> {
        reject_if(!self.open, CqError::InvalidRnicHandle)?;
        if cq.rnic == self.shared.id { Ok(cq.key) } else { Err(CqError::InvalidCqHandle) }
    }

    pub(super) fn cq_mut(&mut self, cq: CqHandle) -> Result<&mut Cq, CqError> {
        let key = self.cq_key(cq)?;
        self.shared.cqs.get_mut(key).ok_or(CqError::InvalidCqHandle)
    }
}

/// Shared Receive Queues.
impl Rnic {
    /// Create S-RQ: creates a Shared Receive Queue.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `TooManyWrs`, `TooManySges`, `LimitOutOfRange`,
    /// `InsufficientResources`.
    pub fn create_srq(&mut self, init: SrqInit) -> Result<(SrqHandle, SrqAttributes), SrqError> {
        reject_if(!self.open, SrqError::InvalidRnicHandle)?;
        let settings = &self.shared.settings;
        reject_if(settings.max_srqs == 0, SrqError::InsufficientResources)?;
        reject_if(init.max_wrs > settings.max_srq_wrs, SrqError::TooManyWrs)?;
        reject_if(init.max_sges > settings.max_sges, SrqError::TooManySges)?;
        reject_if(init.limit > init.max_wrs, SrqError::LimitOutOfRange)?;
        self.shared.memory.add_pd_member(init.pd).map_err(|_| SrqError::InvalidPdId)?;
        let srq = Srq::new(init);
        let attributes = srq.attributes;
        let Some(key) = self.shared.srqs.insert(srq) else {
            self.shared.memory.remove_pd_member(init.pd);
            return Err(SrqError::InsufficientResources);
        };
        Ok((SrqHandle { rnic: self.shared.id, key }, attributes))
    }

    /// Query S-RQ: returns the attributes of an S-RQ.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidSrqHandle`.
    pub fn query_srq(&self, srq: SrqHandle) -> Result<SrqAttributes, SrqError> {
        let key = self.srq_key(srq)?;
        self.shared.srqs.get(key).map(|srq| srq.attributes).ok_or(SrqError::InvalidSrqHandle)
    }

    /// Modify S-RQ: changes the size or the limit of an S-RQ. Returns the greatest number of
    /// outstanding Work Requests.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidSrqHandle`, `TooManyWrs`, `ShrinkFailed`. `LimitOutOfRange` if
    /// a new limit exceeds the size. `InvalidModifier` if the new size is below an armed limit, or
    /// if the RNIC cannot resize queues. An error changes nothing.
    pub fn modify_srq(&mut self, srq: SrqHandle, modify: SrqModify) -> Result<u32, SrqError> {
        let (max, resizes) = (self.shared.settings.max_srq_wrs, self.shared.settings.resizes_queues);
        let srq = self.srq_mut(srq)?;
        let max_wrs = modify.max_wrs.unwrap_or(srq.attributes.max_wrs);
        reject_if(max_wrs != srq.attributes.max_wrs && !resizes, SrqError::InvalidModifier)?;
        reject_if(max_wrs > max, SrqError::TooManyWrs)?;
        reject_if(max_wrs < srq.used, SrqError::ShrinkFailed)?;
        match modify.limit {
            Some(limit) if limit > max_wrs => return Err(SrqError::LimitOutOfRange),
            None if srq.attributes.armed && srq.attributes.limit > max_wrs => return Err(SrqError::InvalidModifier),
            Some(limit) => (srq.attributes.limit, srq.attributes.armed) = (limit, limit > 0),
            None => {}
        }
        srq.attributes.max_wrs = max_wrs;
        Ok(max_wrs)
    }

    /// Destroy S-RQ: removes an S-RQ, even if receives are posted to it.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidSrqHandle`, `QpsStillAssociated`.
    pub fn destroy_srq(&mut self, srq: SrqHandle) -> Result<(), SrqError> {
        let found = self.srq_mut(srq)?;
        reject_if(found.qps > 0, SrqError::QpsStillAssociated)?;
        let pd = found.attributes.pd;
        self.shared.srqs.remove(srq.key);
        self.shared.memory.remove_pd_member(pd);
        Ok(())
    }

    /// PostRQ: posts a list of receives to an S-RQ. Returns the number of posted Work Requests,
    /// which is the length of the list.
    ///
    /// # Errors
    /// The first rejected Work Request and the reason. The Work Requests before the rejected Work
    /// Request are posted.
    pub fn post_srq(&mut self, srq: SrqHandle, list: impl IntoIterator<Item = ReceiveWr>) -> Result<usize, PostError> {
        let status = |error| match error {
            SrqError::InvalidRnicHandle => PostStatus::InvalidRnicHandle,
            _ => PostStatus::InvalidSrqHandle,
        };
        let srq = self.srq_mut(srq).map_err(|error| PostError { posted: 0, status: status(error) })?;
        post_each(list, |wr| {
            check_list(&wr.scatter, srq.attributes.max_sges)?;
            reject_if(srq.used >= srq.attributes.max_wrs, PostStatus::TooManyWrs)?;
            srq.used += 1;
            srq.posted.push_back(wr);
            Ok(())
        })
    }

    fn srq_key(&self, srq: SrqHandle) -> Result<Key, SrqError> {
        reject_if(!self.open, SrqError::InvalidRnicHandle)?;
        if srq.rnic == self.shared.id { Ok(srq.key) } else { Err(SrqError::InvalidSrqHandle) }
    }

    pub(super) fn srq_mut(&mut self, srq: SrqHandle) -> Result<&mut Srq, SrqError> {
        let key = self.srq_key(srq)?;
        self.shared.srqs.get_mut(key).ok_or(SrqError::InvalidSrqHandle)
    }
}
