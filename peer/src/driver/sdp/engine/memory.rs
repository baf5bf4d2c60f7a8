//! The memory of a connection: Private Buffers, posted receives, regions that the peer may read,
//! and unused memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Engine;
use crate::driver::Device;
use crate::driver::sdp::area::{self, Area};
use crate::driver::sdp::outgoing::Outgoing;
use crate::driver::sdp::posted::{Part, Posted};
use crate::driver::sdp::spare_memory::SpareMemory;
use crate::driver::sdp::{SdpError, queue};
use crate::memory::{Access, PdId, Stag};
use crate::sdp::{Connection, Exposed, OpId, Piece, PrivateBuffer, ReceiveId, Region};
use crate::sdp_rnic::Memory;
use crate::verbs::{Payload, Sge};

/// If a payload has at most this number of bytes, it is copied into the Work Request after the
/// headers. For a few bytes, copying is faster than gathering.
const INLINE: u32 = 512;

/// A Private Buffer.
#[derive(Debug)]
pub(super) struct Private {
    pub(super) area: Area,
    /// Size in bytes of the message in the buffer.
    pub(super) filled: u32,
}

/// The memory of an engine, without its state machine.
#[derive(Debug)]
pub(super) struct Buffers<'a> {
    device: &'a Device,
    pd: PdId,
    outgoing: &'a mut Outgoing,
    receives: &'a mut HashMap<ReceiveId, Posted>,
    private: &'a mut HashMap<PrivateBuffer, Private>,
    exposed: &'a mut HashMap<u32, Stag>,
    reading: &'a mut Option<(OpId, ReceiveId)>,
    spare: &'a mut SpareMemory,
    copied: &'a mut u64,
}

impl Memory for Buffers<'_> {
    type Error = SdpError;

    fn register(&mut self, exposed: Exposed) -> Option<Region> {
        match exposed {
            Exposed::Source(piece) => {
                let (area, from) = self.outgoing.area(piece)?;
                let part = (from, piece.len as usize);
                let stag = self.device.verbs(|rnic| area.expose(rnic, self.pd, part, area::SOURCE)).ok()?;
                self.exposed.insert(stag.to_bits(), stag);
                Some(Region { stag: stag.to_bits(), va: 0 })
            }
            Exposed::Sink { receive, .. } => {
                let area = self.receives.get_mut(&receive)?.own(self.device, self.spare).ok()?;
                let stag = self.device.verbs(|rnic| area.register(rnic, self.pd, area::SINK)).ok()?;
                Some(Region { stag, va: 0 })
            }
        }
    }

    fn withdraw(&mut self, stag: u32) -> Result<(), SdpError> {
        if let Some(stag) = self.exposed.remove(&stag) {
            // A region that the peer invalidated still has to be deallocated.
            let _ = self.device.verbs(|rnic| rnic.memory_mut().deallocate_stag(stag.index));
            return Ok(());
        }
        let mut own = self.receives.values_mut().filter_map(Posted::own_area_mut);
        if let Some(area) = own.find(|area| area.stag() == Some(stag)) {
            self.device.verbs(|rnic| area.withdraw(rnic));
        }
        Ok(())
    }

    fn private_buffer(&mut self, buffer: PrivateBuffer, octets: u32) -> Result<Vec<Sge>, SdpError> {
        let size = octets as usize;
        if let Some(Private { area, .. }) = self.private.get(&buffer)
            && area.len() < size
            && let Some(Private { area, .. }) = self.private.remove(&buffer)
        {
            self.spare.give(self.device, area);
        }
        let private = match self.private.entry(buffer) {
            Entry::Occupied(private) => private.into_mut(),
            Entry::Vacant(vacant) => {
                vacant.insert(Private { area: self.spare.take(self.device, size..=size)?, filled: 0 })
            }
        };
        // After a move to another device, a buffer that contained data is not registered.
        private.area.ensure_registered(self.device, self.pd, Access::LOCAL)?;
        Ok(private.area.part(0, octets).into_iter().collect())
    }

    fn release(&mut self, buffer: PrivateBuffer) {
        if let Some(Private { area, .. }) = self.private.remove(&buffer) {
            self.spare.give(self.device, area);
        }
    }

    /// Passes the complete message to the state machine, which reads only the headers. `place`
    /// handles the payload.
    fn arrived(&mut self, buffer: PrivateBuffer, octets: u32, handle: &mut dyn FnMut(&[u8])) {
        let Some(private) = self.private.get_mut(&buffer) else { return };
        private.filled = octets;
        self.device.verbs(|rnic| handle(private.area.octets(rnic, 0, octets as usize)));
    }

    fn send(&mut self, head: &mut Vec<u8>, piece: Piece) -> Result<Vec<Sge>, SdpError> {
        if piece.len > INLINE && head.len() <= queue::HEAD {
            return Ok(self.outgoing.sge(self.device, self.pd, piece)?.into_iter().collect());
        }
        if let Some((area, from)) = self.outgoing.area(piece) {
            let to = from + piece.len as usize;
            self.device.verbs(|rnic| head.extend_from_slice(area.octets(rnic, from, to)));
            *self.copied += u64::from(piece.len);
        }
        Ok(Vec::new())
    }

    fn write(&mut self, piece: Piece) -> Result<Payload, SdpError> {
        let gather = self.outgoing.sge(self.device, self.pd, piece)?;
        Ok(Payload::Gather(gather.into_iter().collect()))
    }

    fn read(&mut self, op: OpId, receive: ReceiveId, at: u64, len: u32) -> Result<Option<Sge>, SdpError> {
        let Some(posted) = self.receives.get_mut(&receive) else { return Ok(None) };
        let (pd, area) = (self.pd, posted.own(self.device, self.spare)?);
        // In iWARP the peer's answer to a Read writes to this region.
        self.device.verbs(|rnic| area.register(rnic, pd, area::SINK))?;
        let part = area.part(at, len);
        if part.is_some() {
            *self.reading = Some((op, receive));
        }
        Ok(part)
    }

    fn completed(&mut self, wr_id: u64) {
        if let Some((_, receive)) = self.reading.take_if(|(op, _)| op.0 == wr_id)
            && let Some(area) = self.receives.get_mut(&receive).and_then(Posted::own_area_mut)
        {
            self.device.verbs(|rnic| area.withdraw(rnic));
        }
    }

    fn place(
        &mut self,
        buffer: PrivateBuffer,
        (from, len): (u32, u32),
        receive: ReceiveId,
        at: u64,
    ) -> Result<(), SdpError> {
        let Some(private) = self.private.get(&buffer) else { return Ok(()) };
        let Some(posted) = self.receives.get_mut(&receive) else { return Ok(()) };
        let (start, len) = (from as usize, len as usize);
        let is_rest = start + len == private.filled as usize;
        if is_rest && len >= private.area.len() / 2 && posted.can_take(at) {
            if let Some(Private { area, .. }) = self.private.remove(&buffer) {
                posted.take(Part { area, from: start, to: start + len });
            }
            return Ok(());
        }
        let own = posted.own(self.device, self.spare)?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.device.verbs(|rnic| private.area.copy(rnic, start, len, own, at));
        *self.copied += len as u64;
        Ok(())
    }
}

impl Engine {
    /// Returns the state machine, and the memory that its steps use.
    pub(super) fn parts(&mut self) -> (&mut Connection, Buffers<'_>) {
        let buffers = Buffers {
            device: &self.device,
            pd: self.pd,
            outgoing: &mut self.outgoing,
            receives: &mut self.receives,
            private: &mut self.private,
            exposed: &mut self.exposed,
            reading: &mut self.reading,
            spare: &mut self.spare,
            copied: &mut self.copied,
        };
        (&mut self.machine, buffers)
    }

    /// Posts receives before the user reads. The number of posted receives is the number in the
    /// settings, minus the number of receives that the unread data would fill
    /// (`Arrived::receives`). Returns whether a receive was posted.
    pub(in super::super) fn post_receives(&mut self) -> bool {
        let mut any = false;
        let taken = self.arrived.receives(self.settings.receive);
        while !self.ended && self.receives.len() + taken < self.settings.receives.max(1) {
            let id = ReceiveId(self.next_receive);
            let len = self.receive_sizer.len(self.settings.receive, self.least_advertised());
            self.next_receive += 1;
            self.receives.insert(id, Posted::new(len));
            if self.machine.receive(id, len as u64, false).is_err() {
                return false;
            }
            any = true;
        }
        any
    }

    /// Returns all memory of the connection.
    pub(in super::super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        let private = self.private.values_mut().map(|private| &mut private.area);
        let posted = self.receives.values_mut().flat_map(Posted::areas_mut).chain(private);
        let unread = posted.chain(self.arrived.areas_mut());
        unread.chain(self.outgoing.areas_mut()).chain(&mut self.queue.heads).chain(&mut self.spare.areas)
    }

    /// Returns whether the connection keeps unused memory.
    pub(in super::super) fn has_unused_memory(&self) -> bool {
        !self.spare.is_empty() || self.outgoing.is_unused()
    }

    /// Frees all unused memory, because the connection transfers nothing.
    pub(in super::super) fn free_unused_memory(&mut self) {
        self.outgoing.rest(&self.device, &mut self.spare);
        let spare = self.spare.take_all().chain(self.queue.rest());
        self.device.verbs(|rnic| spare.for_each(|area| area.free(rnic)));
    }

    /// Ends the peer's access to written data.
    pub(in super::super) fn expose_nothing(&mut self) {
        for stag in self.exposed.drain().map(|(_, stag)| stag) {
            let _ = self.device.verbs(|rnic| rnic.memory_mut().deallocate_stag(stag.index));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // If the future of a start-up was dropped, its Queue Pair still exists. This call destroys
        // it.
        self.tear_down();
        self.expose_nothing();
        let private = self.private.drain().map(|(_, private)| private.area);
        let kept = private.chain(self.receives.drain().flat_map(|(_, posted)| posted.into_areas()));
        let unread = std::mem::take(&mut self.arrived).into_areas();
        let unsent = std::mem::take(&mut self.outgoing).into_areas().chain(self.queue.heads.take());
        let pd = self.pd;
        self.device.verbs(|rnic| {
            kept.chain(unread).chain(unsent).chain(self.spare.take_all()).for_each(|area| area.free(rnic));
            let _ = rnic.memory_mut().deallocate_pd(pd);
        });
    }
}
