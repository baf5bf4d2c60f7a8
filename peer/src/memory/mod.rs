//! Registered memory of an RNIC. Segments and Work Requests access this memory by STag, offset and
//! length. Each access is checked.
//!
//! [`Memory`] contains the Protection Domains (PDs), [buffers](Buffer), Memory Regions and Memory
//! Windows of one RNIC (draft-hilland-rddp-verbs chapter 7). Its public functions are the PD and
//! memory management verbs (draft sections 9.2.2 and 9.2.6). Only privileged Consumers may register
//! memory (VERBS-7.5-2). A Consumer with access to the [`Rnic`](crate::verbs::Rnic) itself is
//! privileged, and gets its memory from [`Rnic::memory_mut`](crate::verbs::Rnic::memory_mut).
//!
//! Peers' segments and the RNIC's own Work Requests specify memory by STag and tagged offset (TO).
//! `Memory::locate` checks each such access and returns a `MemoryRange`, which is valid until the
//! memory changes. This module has no `unsafe` code. All accesses use bounds-checked slices.
//! Therefore an access through a region or window cannot read or write other memory.
//!
//! - Each topic has its own file: [`PhysicalBufferList`] and its checks, regions, windows,
//!   invalidation, access, atomic operations.
//! - Errors describe the fault ([`MemoryError`], [`AccessError`], ...). The errors also provide the
//!   codes for completions and Terminates. The layers above decide which completion or Terminate
//!   reports the fault.
//!
//! This module contains no Queue Pairs (an `Accessor` represents a Queue Pair), no Work Requests,
//! and no memory that processes share.

mod access;
mod arena;
mod atomic;
mod error;
mod indices;
mod invalidate;
mod mapping;
mod region;
mod rights;
mod stag;
mod window;

#[cfg(test)]
mod tests;

pub(crate) use access::{Accessor, MemoryRange};
pub use arena::{ALIGNMENT, Buffer, BufferError, PhysicalAddress};
pub use error::{AccessError, BindError, FastRegisterError, InvalidateError, MappingError, MemoryError};
pub(crate) use invalidate::InvalidateBy;
pub use mapping::{BLOCK_SIZES, ListMode, PAGE_SIZES, PhysicalBufferList, ToBase};
pub use region::{
    FastRegistration, RegionAttributes, RegionKind, Registered, Registration, SharedRegistration, StagState,
};
pub use rights::{Access, RemoteAccess, Right};
pub use stag::{STAG_ZERO, Stag, StagIndex, StagKey};
pub use window::{Bind, WindowAttributes};

use std::collections::{BTreeMap, HashMap, VecDeque};

use arena::Arena;
use indices::Indices;
use region::Region;
use window::Window;

use crate::reject::reject_if;

/// Identifies a Protection Domain of one RNIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PdId(u32);

/// Identifies a Queue Pair of one RNIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QpId(pub u32);

/// Limits of one RNIC's memory. Each limit is independent of the other limits (VERBS-5.1.1-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Kind of buffer list that the RNIC accepts. Default: pages.
    pub mode: ListMode,
    /// Greatest total length of all buffers in bytes. Default 2^32.
    pub max_octets: u64,
    /// Greatest number of Protection Domains. Default 65,536.
    pub max_pds: usize,
    /// Greatest number of entries of one Physical Buffer List. Default 2^20, which is 4 GiB in
    /// pages of the smallest size.
    pub max_pbl_entries: u32,
    /// Greatest number of Memory Regions. Default 65,536.
    pub max_regions: usize,
    /// Greatest number of Memory Windows. Default 65,536.
    pub max_windows: usize,
    /// Seed for the order of STag Indices. A driver should use a random number, because peers must
    /// not be able to guess STags (RFC 5042 section 6.2). The default 0 gives the same order in
    /// each run.
    pub stag_seed: u64,
}

impl Default for MemorySettings {
    fn default() -> Self {
        MemorySettings {
            mode: ListMode::Page,
            max_octets: 1 << 32,
            max_pds: 1 << 16,
            max_pbl_entries: 1 << 20,
            max_regions: 1 << 16,
            max_windows: 1 << 16,
            stag_seed: 0,
        }
    }
}

/// The memory of one RNIC.
#[derive(Debug)]
pub struct Memory {
    settings: MemorySettings,
    /// True after the RNIC is closed. In this case, all other fields have the values of new memory.
    closed: bool,
    arena: Arena,
    /// For each PD, the number of Queue Pairs, Shared Receive Queues, regions and windows in it.
    pds: BTreeMap<PdId, usize>,
    next_pd: u32,
    /// Regions and windows. [`Indices`] maps each STag Index to a position in this table.
    entries: Vec<Option<Entry>>,
    indices: Indices,
    /// Indices that were used and are free again. The Index that has been free for the longest time
    /// comes first.
    free: VecDeque<StagIndex>,
    regions: usize,
    windows: usize,
    /// Number of Valid windows for each Queue Pair. Queue Pairs without windows have no entry.
    bound: HashMap<QpId, usize>,
    /// True if a deviation (a deliberate protocol violation) is active: STags that are locally
    /// invalidated or deallocated stay valid, and freed buffers remain.
    keeps_revoked: bool,
}

#[derive(Debug)]
enum Entry {
    Region(Region),
    Window(Window),
}

impl Memory {
    /// Creates memory without PDs, buffers, regions or windows.
    pub(crate) fn new(settings: MemorySettings) -> Self {
        Memory {
            settings,
            closed: false,
            arena: Arena::new(settings.max_octets),
            pds: BTreeMap::new(),
            next_pd: 1,
            entries: Vec::new(),
            indices: Indices::new(settings.stag_seed),
            free: VecDeque::new(),
            regions: 0,
            windows: 0,
            bound: HashMap::new(),
            keeps_revoked: false,
        }
    }

    /// Frees everything. From now on, each verb returns `InvalidRnicHandle`.
    pub(crate) fn close(&mut self) {
        *self = Memory { closed: true, ..Memory::new(self.settings) };
    }

    fn check_open(&self) -> Result<(), MemoryError> {
        reject_if(self.closed, MemoryError::InvalidRnicHandle)
    }
}

/// Protection Domains (draft sections 5.2 and 9.2.2).
impl Memory {
    /// Allocate PD: creates a Protection Domain. This RNIC never uses the same ID twice.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InsufficientResources`.
    pub fn allocate_pd(&mut self) -> Result<PdId, MemoryError> {
        self.check_open()?;
        let id = PdId(self.next_pd);
        let full = self.pds.len() >= self.settings.max_pds || self.next_pd == u32::MAX;
        reject_if(full, MemoryError::InsufficientResources)?;
        self.next_pd += 1;
        self.pds.insert(id, 0);
        Ok(id)
    }

    /// Deallocate PD: removes a Protection Domain.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`. `PdInUse` if a Queue Pair, Shared Receive Queue, region
    /// or window belongs to the PD.
    pub fn deallocate_pd(&mut self, pd: PdId) -> Result<(), MemoryError> {
        self.check_open()?;
        let members = *self.pds.get(&pd).ok_or(MemoryError::InvalidPdId)?;
        reject_if(members > 0, MemoryError::PdInUse)?;
        self.pds.remove(&pd);
        Ok(())
    }

    /// Counts one more Queue Pair, Shared Receive Queue, region or window in `pd`.
    ///
    /// # Errors
    /// `InvalidPdId`.
    pub(crate) fn add_pd_member(&mut self, pd: PdId) -> Result<(), MemoryError> {
        *self.pds.get_mut(&pd).ok_or(MemoryError::InvalidPdId)? += 1;
        Ok(())
    }

    /// Reduces the count of Queue Pairs, Shared Receive Queues, regions and windows in `pd` by one.
    pub(crate) fn remove_pd_member(&mut self, pd: PdId) {
        if let Some(members) = self.pds.get_mut(&pd) {
            *members = members.saturating_sub(1);
        }
    }
}

/// Buffers.
impl Memory {
    /// Allocates a buffer of `len` bytes, which are all zero. The draft has no such verb, because
    /// the memory of other RNICs comes from the operating system.
    ///
    /// # Errors
    /// `InvalidRnicHandle`. `InsufficientResources`: the total length of all buffers would exceed
    /// the limit.
    pub fn allocate_buffer(&mut self, len: usize) -> Result<Buffer, MemoryError> {
        self.check_open()?;
        self.arena.allocate(len)
    }

    /// Frees a buffer.
    ///
    /// # Errors
    /// The buffer does not exist, or regions use it.
    pub fn free_buffer(&mut self, buffer: Buffer) -> Result<(), BufferError> {
        if self.keeps_revoked {
            return Ok(());
        }
        self.arena.free(buffer)
    }

    /// The contents of a buffer. Bytes that a peer writes after this call are visible in the next
    /// call.
    ///
    /// # Errors
    /// The buffer does not exist.
    pub fn buffer(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        self.arena.buffer(buffer)
    }

    /// The contents of a buffer, which the caller can change.
    ///
    /// # Errors
    /// The buffer does not exist.
    pub fn buffer_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        self.arena.buffer_mut(buffer)
    }
}

/// Resources in use.
impl Memory {
    pub(crate) fn pds(&self) -> usize {
        self.pds.len()
    }

    pub(crate) fn regions(&self) -> usize {
        self.regions
    }

    /// Total length of all buffers in bytes.
    pub(crate) fn octets(&self) -> u64 {
        self.settings.max_octets - self.arena.left()
    }
}

impl Memory {
    /// Makes invalidated and deallocated STags stay valid from now on (a deviation).
    pub(crate) fn keep_revoked(&mut self) {
        self.keeps_revoked = true;
    }

    /// Uses consecutive STag Indices from now on (a deviation). Has no effect if the table already
    /// has entries.
    pub(crate) fn use_consecutive_indices(&mut self) {
        if self.entries.is_empty() {
            self.indices = Indices::consecutive();
        }
    }

    fn entry(&self, index: StagIndex) -> Option<&Entry> {
        self.entries.get(self.indices.position(index))?.as_ref()
    }

    fn entry_mut(&mut self, index: StagIndex) -> Option<&mut Entry> {
        self.entries.get_mut(self.indices.position(index))?.as_mut()
    }

    fn region(&self, index: StagIndex) -> Result<&Region, MemoryError> {
        match self.entry(index) {
            Some(Entry::Region(region)) => Ok(region),
            Some(Entry::Window(_)) | None => Err(MemoryError::InvalidStagIndex),
        }
    }

    fn region_mut(&mut self, index: StagIndex) -> Result<&mut Region, MemoryError> {
        match self.entry_mut(index) {
            Some(Entry::Region(region)) => Ok(region),
            Some(Entry::Window(_)) | None => Err(MemoryError::InvalidStagIndex),
        }
    }

    /// Assigns an Index to `entry`. The caller has checked the limit for regions or windows.
    fn insert(&mut self, entry: Entry) -> Result<StagIndex, MemoryError> {
        let index = self.free.pop_front().map_or_else(|| self.fresh_index(), Ok)?;
        let position = self.indices.position(index);
        match entry {
            Entry::Region(_) => self.regions += 1,
            Entry::Window(_) => self.windows += 1,
        }
        self.entries[position] = Some(entry);
        Ok(index)
    }

    /// Extends the table and returns the Index of the new position.
    fn fresh_index(&mut self) -> Result<StagIndex, MemoryError> {
        // Only one position has no Index. If the first attempt gets this position and the table is
        // not full, the second attempt succeeds.
        for _ in 0..2 {
            let index = self.indices.index(self.entries.len());
            reject_if(self.entries.len() > StagIndex::MAX as usize, MemoryError::InsufficientResources)?;
            self.entries.push(None);
            if let Some(index) = index {
                return Ok(index);
            }
        }
        Err(MemoryError::InsufficientResources)
    }

    fn remove(&mut self, index: StagIndex) -> Option<Entry> {
        let entry = self.entries.get_mut(self.indices.position(index))?.take()?;
        match entry {
            Entry::Region(_) => self.regions -= 1,
            Entry::Window(_) => self.windows -= 1,
        }
        self.free.push_back(index);
        Some(entry)
    }
}

/// Verbs for regions and windows.
impl Memory {
    /// Deallocate STag: removes a region or window, which ends all access through the STag. The
    /// state and Key of the STag do not matter (VERBS-7.9-9).
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidStagIndex`. `WindowsStillBound` if windows are bound to the
    /// region.
    pub fn deallocate_stag(&mut self, index: StagIndex) -> Result<(), MemoryError> {
        self.check_open()?;
        let entry = self.entry(index).ok_or(MemoryError::InvalidStagIndex)?;
        let bound = matches!(entry, Entry::Region(region) if region.windows > 0);
        reject_if(bound, MemoryError::WindowsStillBound)?;
        if self.keeps_revoked {
            return Ok(());
        }
        match self.remove(index) {
            Some(Entry::Region(region)) => {
                self.remove_pd_member(region.pd);
                self.release(region.mapping);
            }
            Some(Entry::Window(window)) => {
                self.remove_pd_member(window.pd);
                self.unbind(&window);
            }
            None => {}
        }
        Ok(())
    }
}
