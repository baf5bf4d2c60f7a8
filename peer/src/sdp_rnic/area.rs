//! The memory that one side of a connection registers with its RNIC. By default, the virtual
//! address of this memory is odd and above 2^32, because tests should use all bits of an address.

use crate::memory::{Access, Buffer, PdId, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use crate::verbs::{Rnic, Sge};
use crate::workload::WorkloadError;

/// The default virtual address of each area. The owner of the memory can choose another address.
pub(super) const VA: u64 = 0x0000_0007_1000_0003;
const PAGE: u32 = 4096;

/// The key of the latest STag. Keys are used in sequence. Therefore an STag that a peer received
/// recently does not become valid again when its index is reused.
#[derive(Debug, Default)]
pub(super) struct Keys(u8);

/// Number of different keys. STags of the same index are adjacent numbers, but STags should be
/// spread sparsely (RDMAP-8.1.1-9). Therefore the number of keys is small.
const KEYS: u8 = 7;

/// Returns the number of unused bytes at the start of a buffer. Because of these bytes, each page
/// of the buffer begins at a multiple of the page size in virtual memory, too.
const fn shift(va: u64) -> usize {
    (va % PAGE as u64) as usize
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    buffer: Buffer,
    stag: Stag,
    /// The virtual address of the first byte.
    pub(super) va: u64,
    pub(super) len: usize,
}

impl Area {
    pub(super) fn new(
        rnic: &mut Rnic,
        keys: &mut Keys,
        (pd, va): (PdId, u64),
        len: usize,
        access: Access,
    ) -> Result<Self, WorkloadError> {
        let buffer = rnic.memory_mut().allocate_buffer(len + shift(va))?;
        match register(rnic, keys, (pd, va), buffer, access) {
            Ok(stag) => Ok(Area { buffer, stag, va, len }),
            Err(error) => {
                rnic.memory_mut().free_buffer(buffer)?;
                Err(error)
            }
        }
    }

    pub(super) fn stag(&self) -> u32 {
        self.stag.to_bits()
    }

    pub(super) fn part(&self, at: u64, length: u32) -> Sge {
        Sge { stag: self.stag(), tagged_offset: self.va.wrapping_add(at), length }
    }

    /// The bytes `from..from + len`, without bytes after the end of the area.
    pub(super) fn octets(&self, rnic: &Rnic, from: usize, len: usize) -> Vec<u8> {
        let from = shift(self.va).saturating_add(from);
        let all = rnic.memory().buffer(self.buffer).ok();
        let octets = all.and_then(|all| all.get(from..from.saturating_add(len).min(all.len())));
        octets.unwrap_or_default().to_vec()
    }

    pub(super) fn put(&self, rnic: &mut Rnic, at: usize, octets: &[u8]) {
        let from = shift(self.va).saturating_add(at);
        let all = rnic.memory_mut().buffer_mut(self.buffer).ok();
        if let Some(into) = all.and_then(|all| all.get_mut(from..from.saturating_add(octets.len()))) {
            into.copy_from_slice(octets);
        }
    }

    /// Ends the peer's access through the current STag. The area then gets another STag.
    pub(super) fn withdraw(
        &mut self,
        rnic: &mut Rnic,
        keys: &mut Keys,
        pd: PdId,
        access: Access,
    ) -> Result<(), WorkloadError> {
        rnic.memory_mut().deallocate_stag(self.stag.index)?;
        self.stag = register(rnic, keys, (pd, self.va), self.buffer, access)?;
        Ok(())
    }

    pub(super) fn free(self, rnic: &mut Rnic) {
        // Ignore errors: an STag or a buffer that cannot be freed stays in the RNIC. It is not an
        // error if the peer has already invalidated the STag.
        let _ = rnic.memory_mut().deallocate_stag(self.stag.index);
        let _ = rnic.memory_mut().free_buffer(self.buffer);
    }
}

fn register(
    rnic: &mut Rnic,
    keys: &mut Keys,
    (pd, va): (PdId, u64),
    buffer: Buffer,
    access: Access,
) -> Result<Stag, WorkloadError> {
    keys.0 = (keys.0 + 1) % KEYS;
    let shift = shift(va) as u64;
    let list = PhysicalBufferList::of(buffer, shift, buffer.len() as u64 - shift, PAGE);
    let base = ToBase::VaBased(va);
    let registration = Registration { pd, key: StagKey(keys.0), list, base, remote: access.is_remote(), access };
    Ok(rnic.memory_mut().register(&registration)?.stag)
}
