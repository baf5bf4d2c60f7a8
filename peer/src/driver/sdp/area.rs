//! Registered memory of a connection: a buffer of the RNIC and one region over all of it, zero-based.

use super::SdpError;
use crate::driver::Device;
use crate::memory::{Access, Buffer, PdId, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use crate::verbs::{Rnic, Sge};

/// Some octets of the RNIC's memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    buffer: Buffer,
    stag: Stag,
}

impl Area {
    /// `len` octets, at least one, with these rights.
    pub(super) fn new(device: &Device, pd: PdId, len: usize, access: Access) -> Result<Self, SdpError> {
        device.verbs(|rnic| {
            let buffer = rnic.allocate_buffer(len.max(1))?;
            match register(rnic, pd, buffer, access) {
                Ok(stag) => Ok(Area { buffer, stag }),
                Err(error) => {
                    rnic.free_buffer(buffer)?;
                    Err(error)
                }
            }
        })
    }

    /// The same octets under another STag; the old one means nothing any more.
    pub(super) fn renew(&mut self, rnic: &mut Rnic, pd: PdId, access: Access) -> Result<(), SdpError> {
        // It is there, whether or not the peer invalidated it.
        rnic.deallocate_stag(self.stag.index)?;
        self.stag = register(rnic, pd, self.buffer, access)?;
        Ok(())
    }

    pub(super) fn stag(&self) -> u32 {
        self.stag.to_bits()
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// `len` octets from `at` on, for a work request.
    pub(super) fn part(&self, at: u64, len: u32) -> Sge {
        Sge { stag: self.stag(), tagged_offset: at, length: len }
    }

    /// Copies octets in.
    pub(super) fn put(&self, rnic: &mut Rnic, octets: &[u8]) {
        if let Some(to) = rnic.buffer_mut(self.buffer).ok().and_then(|all| all.get_mut(..octets.len())) {
            to.copy_from_slice(octets);
        }
    }

    /// Octets from `from` to `to`; none where it has not so many.
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
    pub(super) fn free(self, rnic: &mut Rnic) {
        // A region that the peer invalidated is still there to be given up.
        let _ = rnic.deallocate_stag(self.stag.index);
        let _ = rnic.free_buffer(self.buffer);
    }
}

fn register(rnic: &mut Rnic, pd: PdId, buffer: Buffer, access: Access) -> Result<Stag, SdpError> {
    let list = PhysicalBufferList::of(buffer, 0, buffer.len() as u64, 1 << 21);
    let (key, base) = (StagKey(1), ToBase::ZeroBased);
    let registration = Registration { pd, key, list, base, remote: access.is_remote(), access };
    Ok(rnic.register(&registration)?.stag)
}
