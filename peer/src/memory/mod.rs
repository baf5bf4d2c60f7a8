//! Registered memory: owned by the RNIC, reached only through checked (STag, offset, length)
//! access.
//!
//! [`Memory`] holds Protection Domains, [buffers](Buffer), Memory Regions and Memory Windows of one
//! RNIC (draft-hilland-rddp-verbs chapter 7). Peers' segments and the RNIC's own work requests name
//! memory by STag and TO; [`Memory::locate`] checks every one of them and gives a [`Place`] that is
//! good until the memory's next change. Nothing here is `unsafe`, and nothing outside a region or
//! window can be read or written through one: that is a matter of slices, not of arithmetic alone.
//!
//! - one file a thing: [`PhysicalBufferList`] and its checks, regions, windows, invalidation, access, atomic operations;
//! - errors describe the fault ([`MemoryError`], [`AccessError`], ...); which completion or Terminate they become is decided by
//!   the layers above, with the codes that the errors know.
//!
//! What is absent on purpose: Queue Pairs (they come as [`Accessor`]), work requests, sharing
//! between processes.

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

pub use access::{Accessor, Place, Slices};
pub use arena::{ALIGNMENT, Buffer, BufferError, PhysicalAddress};
pub use atomic::Misaligned;
pub use error::{AccessError, BindError, FastRegisterError, InvalidateError, MappingError, MemoryError};
pub use invalidate::InvalidateBy;
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

/// Identifies a Protection Domain of one RNIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PdId(u32);

/// Identifies a Queue Pair of one RNIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QpId(pub u32);

/// Limits of one RNIC's memory, each for its resource alone (VERBS-5.1.1-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Which lists are taken. Default: pages.
    pub mode: ListMode,
    /// Octets of all buffers. Default 2^32.
    pub max_octets: u64,
    /// Protection Domains. Default 65,536.
    pub max_pds: usize,
    /// Entries of one Physical Buffer List. Default 2^20, which is 4 GiB in the smallest pages.
    pub max_pbl_entries: u32,
    /// Memory Regions. Default 65,536.
    pub max_regions: usize,
    /// Memory Windows. Default 65,536.
    pub max_windows: usize,
    /// Seed for the order of STag Indices. A driver takes a random number: peers must not be able
    /// to guess STags (RFC 5042 section 6.2). Default 0, the same order each time.
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
    arena: Arena,
    /// For each PD, the things that belong to it.
    pds: BTreeMap<PdId, usize>,
    next_pd: u32,
    /// By the place of their STag Index.
    entries: Vec<Option<Entry>>,
    indices: Indices,
    /// Indices to use again, the longest unused first.
    free: VecDeque<StagIndex>,
    regions: usize,
    windows: usize,
    /// Valid windows of each Queue Pair that has some.
    bound: HashMap<QpId, usize>,
    /// A misdeed: what is invalidated or given back stays as it is.
    keeps_revoked: bool,
}

#[derive(Debug)]
enum Entry {
    Region(Region),
    Window(Window),
}

impl Memory {
    /// Empty memory.
    #[must_use]
    pub fn new(settings: MemorySettings) -> Self {
        Memory {
            settings,
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

    /// Its limits.
    #[must_use]
    pub fn settings(&self) -> &MemorySettings {
        &self.settings
    }
}

/// Protection Domains (draft section 5.2).
impl Memory {
    /// Allocate PD: one that no other PD of this RNIC, present or past, is called like.
    ///
    /// # Errors
    /// `InsufficientResources`.
    pub fn allocate_pd(&mut self) -> Result<PdId, MemoryError> {
        let id = PdId(self.next_pd);
        if self.pds.len() >= self.settings.max_pds || self.next_pd == u32::MAX {
            return Err(MemoryError::InsufficientResources);
        }
        self.next_pd += 1;
        self.pds.insert(id, 0);
        Ok(id)
    }

    /// Deallocate PD.
    ///
    /// # Errors
    /// `InvalidPdId`; `PdInUse` while a Queue Pair, Shared Receive Queue, region or window belongs
    /// to it.
    pub fn deallocate_pd(&mut self, pd: PdId) -> Result<(), MemoryError> {
        match self.pds.get(&pd) {
            None => Err(MemoryError::InvalidPdId),
            Some(0) => {
                self.pds.remove(&pd);
                Ok(())
            }
            Some(_) => Err(MemoryError::PdInUse),
        }
    }

    /// One more thing belongs to `pd`.
    ///
    /// # Errors
    /// `InvalidPdId`.
    pub fn join_pd(&mut self, pd: PdId) -> Result<(), MemoryError> {
        *self.pds.get_mut(&pd).ok_or(MemoryError::InvalidPdId)? += 1;
        Ok(())
    }

    /// One thing less belongs to `pd`.
    pub fn leave_pd(&mut self, pd: PdId) {
        if let Some(members) = self.pds.get_mut(&pd) {
            *members = members.saturating_sub(1);
        }
    }
}

/// Buffers.
impl Memory {
    /// A new buffer of `len` octets, all zero.
    ///
    /// # Errors
    /// `InsufficientResources`: the limit of octets would be exceeded.
    pub fn allocate_buffer(&mut self, len: usize) -> Result<Buffer, MemoryError> {
        self.arena.allocate(len)
    }

    /// Gives a buffer back.
    ///
    /// # Errors
    /// No such buffer, or regions use it.
    pub fn free_buffer(&mut self, buffer: Buffer) -> Result<(), BufferError> {
        if self.keeps_revoked {
            return Ok(());
        }
        self.arena.free(buffer)
    }

    /// The octets of a buffer.
    ///
    /// # Errors
    /// No such buffer.
    pub fn buffer(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        self.arena.buffer(buffer)
    }

    /// The octets of a buffer, to be changed.
    ///
    /// # Errors
    /// No such buffer.
    pub fn buffer_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        self.arena.buffer_mut(buffer)
    }
}

/// What is in use.
impl Memory {
    pub(crate) fn pds(&self) -> usize {
        self.pds.len()
    }

    pub(crate) fn regions(&self) -> usize {
        self.regions
    }

    /// Octets of all buffers.
    pub(crate) fn octets(&self) -> u64 {
        self.settings.max_octets - self.arena.left()
    }
}

impl Memory {
    /// From now on, invalidated and deallocated STags stay valid.
    pub(crate) fn keep_revoked(&mut self) {
        self.keeps_revoked = true;
    }

    /// Numbers STags consecutively from now on; there must be none yet.
    pub(crate) fn number_in_a_row(&mut self) {
        if self.entries.is_empty() {
            self.indices = Indices::in_a_row();
        }
    }
}

impl Memory {
    fn entry(&self, index: StagIndex) -> Option<&Entry> {
        self.entries.get(self.indices.place(index))?.as_ref()
    }

    fn entry_mut(&mut self, index: StagIndex) -> Option<&mut Entry> {
        self.entries.get_mut(self.indices.place(index))?.as_mut()
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

    /// Gives an Index to `entry`, which is of a kind of which there may be more.
    fn insert(&mut self, entry: Entry) -> Result<StagIndex, MemoryError> {
        let index = match self.free.pop_front() {
            Some(index) => index,
            None => self.fresh_index()?,
        };
        let place = self.indices.place(index);
        match entry {
            Entry::Region(_) => self.regions += 1,
            Entry::Window(_) => self.windows += 1,
        }
        self.entries[place] = Some(entry);
        Ok(index)
    }

    /// The Index of a new place.
    fn fresh_index(&mut self) -> Result<StagIndex, MemoryError> {
        // One place has no Index.
        for _ in 0..2 {
            let index = self.indices.index(self.entries.len());
            if self.entries.len() > StagIndex::MAX as usize {
                break;
            }
            self.entries.push(None);
            if let Some(index) = index {
                return Ok(index);
            }
        }
        Err(MemoryError::InsufficientResources)
    }

    fn remove(&mut self, index: StagIndex) -> Option<Entry> {
        let entry = self.entries.get_mut(self.indices.place(index))?.take()?;
        match entry {
            Entry::Region(_) => self.regions -= 1,
            Entry::Window(_) => self.windows -= 1,
        }
        self.free.push_back(index);
        Some(entry)
    }
}

/// Both kinds of STag.
impl Memory {
    /// Deallocate STag: all access through it ends. Neither its state nor its Key matter
    /// (VERBS-7.9-9).
    ///
    /// # Errors
    /// `InvalidStagIndex`; `WindowsStillBound` for a region that has some.
    pub fn deallocate(&mut self, index: StagIndex) -> Result<(), MemoryError> {
        match self.entry(index) {
            Some(Entry::Region(region)) if region.windows > 0 => return Err(MemoryError::WindowsStillBound),
            Some(_) => {}
            None => return Err(MemoryError::InvalidStagIndex),
        }
        if self.keeps_revoked {
            return Ok(());
        }
        match self.remove(index) {
            Some(Entry::Region(region)) => {
                self.leave_pd(region.pd);
                self.release(region.mapping);
            }
            Some(Entry::Window(window)) => {
                self.leave_pd(window.pd);
                self.unbind(&window);
            }
            None => {}
        }
        Ok(())
    }
}
