//! Octets of the RNIC's memory that a connection uses: a buffer, and the region over all of it,
//! zero-based, as long as one is needed.
//!
//! A region that the peer may reach is registered when it is advertised and deregistered when its
//! time is over; the octets stay. Its key is nobody's to guess.

use super::SdpError;
use crate::driver::Device;
use crate::driver::device::random_seed;
use crate::memory::{Access, Buffer, PdId, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use crate::verbs::{Rnic, Sge};

/// The peer may read, as the SrcAvail permits.
pub(super) const SOURCE: Access =
    Access { local_read: true, local_write: false, remote_read: true, remote_write: false, bind: false };
/// The peer may write, as the SinkAvail permits; or it answers a Read of this side.
pub(super) const SINK: Access =
    Access { local_read: false, local_write: true, remote_read: false, remote_write: true, bind: false };

/// Some octets of the RNIC's memory.
#[derive(Debug)]
pub(super) struct Area {
    buffer: Buffer,
    stag: Option<Stag>,
}

impl Area {
    /// `len` octets, at least one; nobody can reach them through the RNIC.
    pub(super) fn new(rnic: &mut Rnic, len: usize) -> Result<Self, SdpError> {
        Ok(Area { buffer: rnic.allocate_buffer(len.max(1))?, stag: None })
    }

    /// Registers it with these rights, unless it is: with the same then.
    pub(super) fn have_registered(&mut self, device: &Device, pd: PdId, access: Access) -> Result<(), SdpError> {
        if self.stag.is_none() {
            device.verbs(|rnic| self.register(rnic, pd, access))?;
        }
        Ok(())
    }

    /// Registers it; gives the STag. What was registered before means nothing any more.
    pub(super) fn register(&mut self, rnic: &mut Rnic, pd: PdId, access: Access) -> Result<u32, SdpError> {
        self.withdraw(rnic);
        let stag = self.expose(rnic, pd, (0, self.buffer.len()), access)?;
        self.stag = Some(stag);
        Ok(stag.to_bits())
    }

    /// Registers `len` octets from `from` on by themselves. The STag has to be given up before the
    /// memory is.
    pub(super) fn expose(
        &self,
        rnic: &mut Rnic,
        pd: PdId,
        (from, len): (usize, usize),
        access: Access,
    ) -> Result<Stag, SdpError> {
        let list = PhysicalBufferList::of(self.buffer, from as u64, len as u64, 1 << 21);
        let [key, ..] = random_seed().to_be_bytes();
        let (key, base) = (StagKey(key), ToBase::ZeroBased);
        Ok(rnic.register(&Registration { pd, key, list, base, remote: access.is_remote(), access })?.stag)
    }

    /// Nobody reaches it through the RNIC any more.
    pub(super) fn withdraw(&mut self, rnic: &mut Rnic) {
        if let Some(stag) = self.stag.take() {
            // A region that the peer invalidated is still there to be given up.
            let _ = rnic.deallocate_stag(stag.index);
        }
    }

    pub(super) fn stag(&self) -> Option<u32> {
        self.stag.map(Stag::to_bits)
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// `len` octets from `at` on, for a work request; `None` where it is not registered.
    pub(super) fn part(&self, at: u64, len: u32) -> Option<Sge> {
        Some(Sge { stag: self.stag()?, tagged_offset: at, length: len })
    }

    /// Copies octets in, from `at` on.
    pub(super) fn put(&self, rnic: &mut Rnic, at: usize, octets: &[u8]) {
        if let Some(to) = rnic.buffer_mut(self.buffer).ok().and_then(|all| all.get_mut(at..at + octets.len())) {
            to.copy_from_slice(octets);
        }
    }

    /// Octets from `from` to `to`; none if it has fewer.
    pub(super) fn octets<'a>(&self, rnic: &'a Rnic, from: usize, to: usize) -> &'a [u8] {
        rnic.buffer(self.buffer).ok().and_then(|all| all.get(from..to)).unwrap_or_default()
    }

    /// Copies `len` octets from `from` on to `at` of another one.
    pub(super) fn copy(&self, rnic: &mut Rnic, from: usize, len: usize, other: &Area, at: usize) {
        let octets = self.octets(rnic, from, from + len).to_vec();
        if let Some(to) = rnic.buffer_mut(other.buffer).ok().and_then(|all| all.get_mut(at..at + octets.len())) {
            to.copy_from_slice(&octets);
        }
    }

    /// Gives the memory back.
    pub(super) fn free(mut self, rnic: &mut Rnic) {
        self.withdraw(rnic);
        let _ = rnic.free_buffer(self.buffer);
    }
}
