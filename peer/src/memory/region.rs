//! Memory Regions: their life (draft Figure 17) and the verbs that change it.

use std::sync::Arc;

use super::mapping::Mapping;
use super::{
    Access, Entry, FastRegisterError, ListMode, MappingError, Memory, MemoryError, PdId, PhysicalBufferList, Stag,
    StagIndex, StagKey, ToBase,
};

/// Whether memory can be reached through an STag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StagState {
    /// The Index alone has meaning.
    Invalid,
    /// All 32 bits count.
    Valid,
}

/// What became of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// The initial state: it can be invalidated and registered anew.
    NonShared,
    /// Its list belongs to several STags: it stays Valid until it is deallocated.
    Shared,
}

#[derive(Debug)]
pub(super) struct Region {
    pub(super) pd: PdId,
    pub(super) key: StagKey,
    pub(super) kind: RegionKind,
    /// The Remote Access Flag: remote rights may be given.
    remote: bool,
    /// Entries that its list may have.
    capacity: u32,
    pub(super) base: ToBase,
    pub(super) access: Access,
    /// Valid windows that are bound to it.
    pub(super) windows: usize,
    /// Its octets, when Valid.
    pub(super) mapping: Option<Arc<Mapping>>,
}

/// The arguments of RI-Register and RI-Reregister.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The region's PD.
    pub pd: PdId,
    /// Its Key.
    pub key: StagKey,
    /// Its memory.
    pub list: PhysicalBufferList,
    /// How its offsets count.
    pub base: ToBase,
    /// The Remote Access Flag; without it no remote right may be given, now or by Fast-Register.
    pub remote: bool,
    /// Its rights.
    pub access: Access,
}

/// The arguments of Register Shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedRegistration {
    /// The new region's PD.
    pub pd: PdId,
    /// Its Key.
    pub key: StagKey,
    /// How its offsets count; where VA based, the VA must have the First Byte Offset of the list.
    pub base: ToBase,
    /// The Remote Access Flag.
    pub remote: bool,
    /// Its rights.
    pub access: Access,
}

/// The arguments of a Fast-Register work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastRegistration {
    /// Index of an STag in Invalid state, and its Key from now on.
    pub stag: Stag,
    /// Its memory; at most as many entries as the STag was allocated with.
    pub list: PhysicalBufferList,
    /// How its offsets count.
    pub base: ToBase,
    /// Its rights.
    pub access: Access,
}

/// A region that was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// Its STag.
    pub stag: Stag,
    /// Entries that its list may have, at least as many as requested.
    pub pbl_entries: u32,
}

/// The result of Query MR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionAttributes {
    /// The PD.
    pub pd: PdId,
    /// The Key, in Valid state.
    pub key: Option<StagKey>,
    /// The state.
    pub state: StagState,
    /// Shared or not.
    pub kind: RegionKind,
    /// The Remote Access Flag.
    pub remote: bool,
    /// Entries that its list may have.
    pub pbl_entries: u32,
    /// The rights, in Valid state.
    pub access: Option<Access>,
}

impl Region {
    fn state(&self) -> StagState {
        if self.mapping.is_some() { StagState::Valid } else { StagState::Invalid }
    }
}

impl Memory {
    /// Allocate Non-Shared MR STag: an STag in Invalid state for Fast-Register, or RI-Reregister,
    /// of up to `pbl_entries` entries.
    ///
    /// # Errors
    /// `InvalidPdId`; `InsufficientResources`: too many regions, or entries than a list may have.
    pub fn allocate_stag(&mut self, pd: PdId, pbl_entries: u32, remote: bool) -> Result<Registered, MemoryError> {
        if !self.pds.contains_key(&pd) {
            return Err(MemoryError::InvalidPdId);
        }
        if pbl_entries > self.settings.max_pbl_entries {
            return Err(MemoryError::InsufficientResources);
        }
        let key = StagKey(0);
        let region = Region {
            pd,
            key,
            kind: RegionKind::NonShared,
            remote,
            capacity: pbl_entries,
            base: ToBase::ZeroBased,
            access: Access::default(),
            windows: 0,
            mapping: None,
        };
        let index = self.insert_region(region)?;
        Ok(Registered { stag: Stag { index, key }, pbl_entries })
    }

    /// RI-Register: a region in Valid state.
    ///
    /// # Errors
    /// All of draft Figure 33 but `InvalidStagIndex` and `WindowsStillBound`; nothing is registered
    /// then.
    pub fn register(&mut self, registration: &Registration) -> Result<Registered, MemoryError> {
        let region = self.new_region(registration)?;
        let pbl_entries = region.capacity;
        let index = self.insert_region(region)?;
        Ok(Registered { stag: Stag { index, key: registration.key }, pbl_entries })
    }

    /// RI-Reregister: gives a Non-Shared region, Valid or Invalid, everything anew. The Index stays
    /// the same here.
    ///
    /// # Errors
    /// `InvalidStagIndex` and `WindowsStillBound` leave the region as it was. With any other error
    /// of draft Figure 33 the region is deallocated (VERBS-7.3.2.3-8).
    pub fn reregister(&mut self, index: StagIndex, registration: &Registration) -> Result<Registered, MemoryError> {
        let old = self.region(index)?;
        if old.kind == RegionKind::Shared {
            return Err(MemoryError::InvalidStagIndex);
        }
        if old.windows > 0 {
            return Err(MemoryError::WindowsStillBound);
        }
        let old_capacity = old.capacity;
        let mut region = match self.new_region(registration) {
            Ok(region) => region,
            Err(error) => {
                self.deallocate(index)?;
                return Err(error);
            }
        };
        region.capacity = region.capacity.max(old_capacity);
        let pbl_entries = region.capacity;
        self.adopt(&region);
        let old = std::mem::replace(self.region_mut(index)?, region);
        self.leave_pd(old.pd);
        self.release(old.mapping);
        Ok(Registered { stag: Stag { index, key: registration.key }, pbl_entries })
    }

    /// Register Shared MR: another STag, with rights of its own, for the memory of `existing`,
    /// which becomes Shared.
    ///
    /// # Errors
    /// `InvalidStagIndex` when `existing` is no Valid region, or its Key is another; `InvalidPdId`,
    /// `InvalidAccessRights`, `InvalidVirtualAddress`, `InsufficientResources`.
    pub fn register_shared(&mut self, existing: Stag, new: &SharedRegistration) -> Result<Stag, MemoryError> {
        let old = self.region(existing.index)?;
        let mapping = old.mapping.clone().filter(|_| old.key == existing.key).ok_or(MemoryError::InvalidStagIndex)?;
        let capacity = old.capacity;
        if !self.pds.contains_key(&new.pd) {
            return Err(MemoryError::InvalidPdId);
        }
        check_access(new.access, new.remote)?;
        mapping.check_base(new.base)?;
        let region = Region {
            pd: new.pd,
            key: new.key,
            kind: RegionKind::Shared,
            remote: new.remote,
            capacity,
            base: new.base,
            access: new.access,
            windows: 0,
            mapping: Some(mapping),
        };
        let index = self.insert_region(region)?;
        self.region_mut(existing.index)?.kind = RegionKind::Shared;
        Ok(Stag { index, key: new.key })
    }

    /// Fast-Register, for a Queue Pair of PD `pd` that is allowed to: from Invalid to Valid.
    ///
    /// # Errors
    /// The completion status; the STag is as it was.
    pub fn fast_register(&mut self, pd: PdId, new: &FastRegistration) -> Result<(), FastRegisterError> {
        let old = self.region(new.stag.index).map_err(|_| FastRegisterError::InvalidStag)?;
        if old.kind == RegionKind::Shared {
            return Err(FastRegisterError::InvalidStag);
        }
        if old.pd != pd {
            return Err(FastRegisterError::InvalidPdId);
        }
        if old.state() == StagState::Valid {
            return Err(FastRegisterError::NotInvalid);
        }
        if new.list.entries.len() > old.capacity as usize {
            return Err(MappingError::TooLong.into());
        }
        check_access(new.access, old.remote)?;
        let mapping = Mapping::new(&self.arena, self.settings.mode, &new.list, new.base)?;
        self.pin(&mapping);
        let region = self.region_mut(new.stag.index).map_err(|_| FastRegisterError::InvalidStag)?;
        region.key = new.stag.key;
        region.base = new.base;
        region.access = new.access;
        region.mapping = Some(Arc::new(mapping));
        Ok(())
    }

    /// Query MR.
    ///
    /// # Errors
    /// `InvalidStagIndex`, also for a window's.
    pub fn query_region(&self, index: StagIndex) -> Result<RegionAttributes, MemoryError> {
        let region = self.region(index)?;
        let valid = region.state() == StagState::Valid;
        Ok(RegionAttributes {
            pd: region.pd,
            key: valid.then_some(region.key),
            state: region.state(),
            kind: region.kind,
            remote: region.remote,
            pbl_entries: region.capacity,
            access: valid.then_some(region.access),
        })
    }

    /// A Valid region as `registration` wants it, not yet counted anywhere.
    fn new_region(&self, registration: &Registration) -> Result<Region, MemoryError> {
        let Registration { pd, key, list, base, remote, access } = registration;
        if !self.pds.contains_key(pd) {
            return Err(MemoryError::InvalidPdId);
        }
        let entries = u32::try_from(list.entries.len()).unwrap_or(u32::MAX);
        if entries > self.settings.max_pbl_entries {
            return Err(MemoryError::InsufficientResources);
        }
        check_access(*access, *remote)?;
        let mapping = Mapping::new(&self.arena, self.settings.mode, list, *base)?;
        Ok(Region {
            pd: *pd,
            key: *key,
            kind: RegionKind::NonShared,
            remote: *remote,
            capacity: entries,
            base: *base,
            access: *access,
            windows: 0,
            mapping: Some(Arc::new(mapping)),
        })
    }

    fn insert_region(&mut self, region: Region) -> Result<StagIndex, MemoryError> {
        if self.regions >= self.settings.max_regions {
            return Err(MemoryError::InsufficientResources);
        }
        self.adopt(&region);
        self.insert(Entry::Region(region))
    }

    /// Counts the region in its PD and its mapping in the buffers.
    fn adopt(&mut self, region: &Region) {
        // The callers saw that the PD exists.
        let _ = self.join_pd(region.pd);
        // Of a list that several STags share, the first one counts.
        if let Some(mapping) = &region.mapping
            && region.kind == RegionKind::NonShared
        {
            self.pin(mapping);
        }
    }

    fn pin(&mut self, mapping: &Mapping) {
        for slot in mapping.slots() {
            self.arena.pin(slot);
        }
    }

    /// Gives back the buffers of a mapping that nobody else has.
    pub(super) fn release(&mut self, mapping: Option<Arc<Mapping>>) {
        if let Some(mapping) = mapping.and_then(Arc::into_inner) {
            for slot in mapping.slots() {
                self.arena.unpin(slot);
            }
        }
    }

    /// The list mode that the RNIC was opened in.
    #[must_use]
    pub fn list_mode(&self) -> ListMode {
        self.settings.mode
    }
}

/// Figure 18, and the Remote Access Flag (VERBS-7.4-6).
fn check_access(access: Access, remote: bool) -> Result<(), MappingError> {
    if access.is_valid() && (remote || !access.is_remote()) { Ok(()) } else { Err(MappingError::AccessRights) }
}
