//! The memory that a connection uses on its RNIC. An area is a buffer. While the RNIC has to access
//! an area, the area is registered: a zero-based region covers the buffer, or a part of the buffer.
//!
//! A region that the peer may access is registered when it is advertised, and deregistered when the
//! peer's access ends. The buffer stays. The STag's key is random, so a peer cannot guess the STag.

use super::SdpError;
use crate::driver::Device;
use crate::driver::device::random_seed;
use crate::memory::{Access, Buffer, PdId, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use crate::verbs::{Rnic, Sge};

/// Rights for memory that the peer may read after a SrcAvail.
pub(super) const SOURCE: Access =
    Access { local_read: true, local_write: false, remote_read: true, remote_write: false, bind: false };
/// Rights for memory that the peer may write to, after a SinkAvail or in answer to a Read of this
/// side.
pub(super) const SINK: Access =
    Access { local_read: false, local_write: true, remote_read: false, remote_write: true, bind: false };

/// A buffer of the RNIC, with the STag of its region if it is registered.
#[derive(Debug)]
pub(super) struct Area {
    buffer: Buffer,
    stag: Option<Stag>,
}

impl Area {
    /// Creates an area of `len` bytes, at least one byte. It is not registered.
    pub(super) fn new(rnic: &mut Rnic, len: usize) -> Result<Self, SdpError> {
        Ok(Area { buffer: rnic.memory_mut().allocate_buffer(len.max(1))?, stag: None })
    }

    /// Registers the area with `access`. If the area is already registered, does nothing. In this
    /// case the caller must have registered the area with the same `access`.
    pub(super) fn ensure_registered(&mut self, device: &Device, pd: PdId, access: Access) -> Result<(), SdpError> {
        if self.stag.is_none() {
            device.verbs(|rnic| self.register(rnic, pd, access))?;
        }
        Ok(())
    }

    /// Registers the area and returns the STag. The previous STag of the area, if any, becomes
    /// invalid.
    pub(super) fn register(&mut self, rnic: &mut Rnic, pd: PdId, access: Access) -> Result<u32, SdpError> {
        self.withdraw(rnic);
        let stag = self.expose(rnic, pd, (0, self.buffer.len()), access)?;
        self.stag = Some(stag);
        Ok(stag.to_bits())
    }

    /// Registers only `len` bytes, which begin at offset `from`. The caller has to deallocate the
    /// STag before it frees the area.
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
        Ok(rnic.memory_mut().register(&Registration { pd, key, list, base, remote: access.is_remote(), access })?.stag)
    }

    /// Ends all access through the RNIC.
    pub(super) fn withdraw(&mut self, rnic: &mut Rnic) {
        if let Some(stag) = self.stag.take() {
            // A region that the peer invalidated still has to be deallocated.
            let _ = rnic.memory_mut().deallocate_stag(stag.index);
        }
    }

    pub(super) fn stag(&self) -> Option<u32> {
        self.stag.map(Stag::to_bits)
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns `len` bytes that begin at offset `at`, for a Work Request. Returns `None` if the
    /// area is not registered.
    pub(super) fn part(&self, at: u64, len: u32) -> Option<Sge> {
        Some(Sge { stag: self.stag()?, tagged_offset: at, length: len })
    }

    /// Copies `octets` into the area. The first byte goes to offset `at`.
    pub(super) fn put(&self, rnic: &mut Rnic, at: usize, octets: &[u8]) {
        let all = rnic.memory_mut().buffer_mut(self.buffer).ok();
        if let Some(to) = all.and_then(|all| all.get_mut(at..at + octets.len())) {
            to.copy_from_slice(octets);
        }
    }

    /// Returns the bytes `from..to`. Returns no bytes if the area ends before `to`.
    pub(super) fn octets<'a>(&self, rnic: &'a Rnic, from: usize, to: usize) -> &'a [u8] {
        rnic.memory().buffer(self.buffer).ok().and_then(|all| all.get(from..to)).unwrap_or_default()
    }

    /// Copies `len` bytes, which begin at offset `from`, to offset `at` of another area.
    pub(super) fn copy(&self, rnic: &mut Rnic, from: usize, len: usize, other: &Area, at: usize) {
        let octets = self.octets(rnic, from, from + len).to_vec();
        other.put(rnic, at, &octets);
    }

    /// Deregisters the area and frees its buffer.
    pub(super) fn free(mut self, rnic: &mut Rnic) {
        self.withdraw(rnic);
        let _ = rnic.memory_mut().free_buffer(self.buffer);
    }
}
