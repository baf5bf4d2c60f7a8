//! The software RNIC of an endpoint, and the memory that payload is copied to and from: sends,
//! receives and Private Buffers.
//!
//! Sends are kept until the endpoint is dropped.

use std::collections::HashMap;

use bytes::Bytes;

use super::area::{Area, Keys, VA};
use super::binding::Memory;
use crate::memory::{Access, PdId};
use crate::sdp::{Exposed, OpId, Piece, PrivateBuffer, ReceiveId, Region, SendId};
use crate::verbs::{Payload, Rnic, Sge};
use crate::workload::WorkloadError;

const SENT: Access = Access { local_read: true, remote_read: true, ..Access::LOCAL };
pub(super) const RECEIVED: Access = Access { remote_write: true, ..Access::LOCAL };

/// The RNIC, and the connection's memory in it.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) rnic: Rnic,
    pub(super) keys: Keys,
    pub(super) pd: PdId,
    /// The virtual address of each new buffer that the peer may read or write.
    pub(super) va: u64,
    /// All sends since the start. An endpoint with deviations can repeat a send.
    pub(super) sends: HashMap<SendId, Vec<u8>>,
    pub(super) receives: HashMap<ReceiveId, Area>,
    pub(super) private: HashMap<PrivateBuffer, Area>,
    /// The copies of sends that the peer may read, by STag.
    pub(super) exposed: HashMap<u32, Area>,
}

impl Memory for Buffers {
    type Error = WorkloadError;

    fn register(&mut self, exposed: Exposed) -> Option<Region> {
        match exposed {
            Exposed::Source(piece) => {
                let octets = part(&self.sends, piece);
                let area = Area::new(&mut self.rnic, &mut self.keys, (self.pd, self.va), octets.len(), SENT).ok()?;
                area.put(&mut self.rnic, 0, octets);
                self.exposed.insert(area.stag(), area);
                Some(Region { stag: area.stag(), va: area.va })
            }
            Exposed::Sink { receive, .. } => {
                let area = self.receives.get(&receive)?;
                Some(Region { stag: area.stag(), va: area.va })
            }
        }
    }

    fn withdraw(&mut self, stag: u32) -> Result<(), WorkloadError> {
        if let Some(area) = self.exposed.remove(&stag) {
            area.free(&mut self.rnic);
        } else if let Some(area) = self.receives.values_mut().find(|area| area.stag() == stag) {
            area.withdraw(&mut self.rnic, &mut self.keys, self.pd, RECEIVED)?;
        }
        Ok(())
    }

    fn private_buffer(&mut self, buffer: PrivateBuffer, octets: u32) -> Result<Vec<Sge>, WorkloadError> {
        let size = octets as usize;
        let area = match self.private.get(&buffer).copied().filter(|area| area.len >= size) {
            Some(area) => area,
            None => {
                let area = Area::new(&mut self.rnic, &mut self.keys, (self.pd, VA), size, Access::LOCAL)?;
                if let Some(old) = self.private.insert(buffer, area) {
                    old.free(&mut self.rnic);
                }
                area
            }
        };
        Ok(vec![area.part(0, octets)])
    }

    fn release(&mut self, buffer: PrivateBuffer) {
        if let Some(area) = self.private.remove(&buffer) {
            area.free(&mut self.rnic);
        }
    }

    fn arrived(&mut self, buffer: PrivateBuffer, octets: u32, handle: &mut dyn FnMut(&[u8])) {
        // A suspension releases Private Buffers whose receives are still posted. A message that
        // arrives in a released buffer is ignored.
        if let Some(area) = self.private.get(&buffer) {
            handle(&area.octets(&self.rnic, 0, octets as usize));
        }
    }

    fn send(&mut self, head: &mut Vec<u8>, piece: Piece) -> Result<Vec<Sge>, WorkloadError> {
        head.extend_from_slice(part(&self.sends, piece));
        Ok(Vec::new())
    }

    fn write(&mut self, piece: Piece) -> Result<Payload, WorkloadError> {
        Ok(Payload::Inline(Bytes::copy_from_slice(part(&self.sends, piece))))
    }

    fn read(&mut self, _: OpId, receive: ReceiveId, at: u64, len: u32) -> Result<Option<Sge>, WorkloadError> {
        Ok(self.receives.get(&receive).map(|area| area.part(at, len)))
    }

    fn completed(&mut self, _: u64) {}

    fn place(
        &mut self,
        buffer: PrivateBuffer,
        (from, len): (u32, u32),
        receive: ReceiveId,
        at: u64,
    ) -> Result<(), WorkloadError> {
        if let (Some(private), Some(area)) = (self.private.get(&buffer), self.receives.get(&receive)) {
            let octets = private.octets(&self.rnic, from as usize, len as usize);
            area.put(&mut self.rnic, usize::try_from(at).unwrap_or(usize::MAX), &octets);
        }
        Ok(())
    }
}

/// The bytes of this part of a send, without bytes after the end of the send.
fn part(sends: &HashMap<SendId, Vec<u8>>, piece: Piece) -> &[u8] {
    let octets = sends.get(&piece.send).map(Vec::as_slice).unwrap_or_default();
    let from = usize::try_from(piece.from).unwrap_or(usize::MAX).min(octets.len());
    &octets[from..octets.len().min(from.saturating_add(piece.len as usize))]
}
