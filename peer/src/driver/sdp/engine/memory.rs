//! The memory of a connection: Private Buffers and receives that are posted, where payload goes,
//! what the peer may read, what is spare.

use std::collections::hash_map::Entry;

use super::{Engine, RECEIVE};
use crate::driver::sdp::SdpError;
use crate::driver::sdp::area::Area;
use crate::driver::sdp::posted::{Part, Posted};
use crate::memory::Access;
use crate::sdp::{PrivateBuffer, ReceiveId};
use crate::verbs::{PostError, PostStatus, ReceiveWr};

/// A Private Buffer.
#[derive(Debug)]
pub(super) struct Private {
    pub(super) area: Area,
    /// Octets of the message in it.
    pub(super) filled: u32,
}

impl Engine {
    /// Octets of a Private Buffer go to a receive.
    pub(super) fn place(
        &mut self,
        buffer: PrivateBuffer,
        (from, len): (u32, u32),
        receive: ReceiveId,
        at: u64,
    ) -> Result<(), SdpError> {
        let Some(private) = self.private.get(&buffer) else { return Ok(()) };
        let Some(posted) = self.receives.get_mut(&receive) else { return Ok(()) };
        let (start, len) = (from as usize, len as usize);
        let is_rest = from as usize + len == private.filled as usize;
        if is_rest && len >= private.area.len() / 2 && posted.can_take(at) {
            if let Some(Private { area, .. }) = self.private.remove(&buffer) {
                posted.take(Part { area, from: start, to: start + len });
            }
            return Ok(());
        }
        let own = posted.own(&self.device, &mut self.spare)?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.device.verbs(|rnic| private.area.copy(rnic, start, len, own, at));
        self.copied += len as u64;
        Ok(())
    }

    /// The peer's access ends.
    pub(super) fn withdraw(&mut self, stag: u32) {
        if let Some(stag) = self.exposed.remove(&stag) {
            // A region that the peer invalidated is still there to be given up.
            let _ = self.device.verbs(|rnic| rnic.deallocate_stag(stag.index));
            return;
        }
        let mut own = self.receives.values_mut().filter_map(Posted::own_area_mut);
        if let Some(area) = own.find(|area| area.stag() == Some(stag)) {
            self.device.verbs(|rnic| area.withdraw(rnic));
        }
    }

    pub(super) fn post_private(&mut self, buffer: PrivateBuffer, octets: u32) -> Result<(), SdpError> {
        let size = octets as usize;
        if let Some(Private { area, .. }) = self.private.get(&buffer)
            && area.len() < size
            && let Some(Private { area, .. }) = self.private.remove(&buffer)
        {
            self.spare.give(&self.device, area);
        }
        let private = match self.private.entry(buffer) {
            Entry::Occupied(private) => private.into_mut(),
            Entry::Vacant(vacant) => {
                vacant.insert(Private { area: self.spare.take(&self.device, size..=size)?, filled: 0 })
            }
        };
        // It is not when it held octets while the connection moved.
        private.area.have_registered(&self.device, self.pd, Access::LOCAL)?;
        let scatter = private.area.part(0, octets).into_iter().collect();
        let wr = ReceiveWr { wr_id: RECEIVE | u64::from(buffer.0), scatter };
        match self.device.post_receive(self.qp, [wr]) {
            // The connection has ended; what had arrived is reported first.
            Ok(_) | Err(PostError { status: PostStatus::InvalidQpState, .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives are posted ahead, as many as the settings require, less those that what is unread
    /// takes up; gives whether any was.
    pub(in super::super) fn post_receives(&mut self) -> bool {
        let mut any = false;
        let taken = self.arrived.receives(self.settings.receive);
        while !self.ended && self.receives.len() + taken < self.settings.receives.max(1) {
            let id = ReceiveId(self.next_receive);
            let len = self.ahead.len(self.settings.receive, self.least_advertised());
            self.next_receive += 1;
            self.receives.insert(id, Posted::new(len));
            if self.machine.receive(id, len as u64, false).is_err() {
                return false;
            }
            any = true;
        }
        any
    }

    /// All memory that is the connection's.
    pub(in super::super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        let private = self.private.values_mut().map(|private| &mut private.area);
        let posted = self.receives.values_mut().flat_map(Posted::areas_mut).chain(private);
        let unread = posted.chain(self.arrived.areas_mut());
        unread.chain(self.outgoing.areas_mut()).chain(self.queue.areas_mut()).chain(self.spare.areas_mut())
    }

    /// Memory is kept that nothing waits in.
    pub(in super::super) fn keeps_spare(&self) -> bool {
        !self.spare.is_empty() || self.outgoing.is_resting()
    }

    /// Gives memory back that nothing waits in: who rests keeps none.
    pub(in super::super) fn give_spare_back(&mut self) {
        self.outgoing.rest(&self.device, &mut self.spare);
        let spare = self.spare.take_all().chain(self.queue.rest());
        self.device.verbs(|rnic| spare.for_each(|area| area.free(rnic)));
    }

    /// The peer may read no send any more.
    pub(in super::super) fn expose_nothing(&mut self) {
        for stag in self.exposed.drain().map(|(_, stag)| stag) {
            let _ = self.device.verbs(|rnic| rnic.deallocate_stag(stag.index));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A start-up that nobody waits for any more ends here, with its Queue Pair.
        self.tear_down();
        self.expose_nothing();
        let private = self.private.drain().map(|(_, private)| private.area);
        let kept = private.chain(self.receives.drain().flat_map(|(_, posted)| posted.into_areas()));
        let unread = std::mem::take(&mut self.arrived).into_areas();
        let unsent = std::mem::take(&mut self.outgoing).into_areas().chain(std::mem::take(&mut self.queue).into_area());
        let pd = self.pd;
        self.device.verbs(|rnic| {
            kept.chain(unread).chain(unsent).chain(self.spare.take_all()).for_each(|area| area.free(rnic));
            let _ = rnic.deallocate_pd(pd);
        });
    }
}
