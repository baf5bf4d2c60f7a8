//! Memory Regions: their states (draft-hilland-rddp-verbs Figure 17) and the verbs that change
//! them.

use std::sync::Arc;

use super::mapping::Mapping;
use super::{
    Access, Entry, FastRegisterError, ListMode, MappingError, Memory, MemoryError, PdId, PhysicalBufferList, Stag,
    StagIndex, StagKey, ToBase,
};
use crate::reject::reject_if;

/// Whether an STag allows access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StagState {
    /// The STag allows no access. Only its Index has a meaning.
    Invalid,
    /// The STag allows access. Index and Key must match.
    Valid,
}

/// Whether a region can share its memory with other regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// The kind of a new region. The region can be invalidated and registered again.
    NonShared,
    /// The verb Register Shared MR has created this region, or another region with the same memory.
    /// The region stays Valid until it is deallocated.
    Shared,
}

#[derive(Debug)]
pub(super) struct Region {
    pub(super) pd: PdId,
    pub(super) key: StagKey,
    pub(super) kind: RegionKind,
    /// The Remote Access Flag: the region may have remote rights.
    remote: bool,
    /// Number of entries that the region's Physical Buffer List can have.
    capacity: u32,
    pub(super) base: ToBase,
    pub(super) access: Access,
    /// Number of Valid windows that are bound to the region.
    pub(super) windows: usize,
    /// The region's memory. `None` in Invalid state.
    pub(super) mapping: Option<Arc<Mapping>>,
}

/// The arguments of RI-Register and RI-Reregister.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The region's PD.
    pub pd: PdId,
    /// Key of the region.
    pub key: StagKey,
    /// Memory of the region.
    pub list: PhysicalBufferList,
    /// TO of the first byte.
    pub base: ToBase,
    /// The Remote Access Flag. Without this flag, the region has no remote rights, and
    /// Fast-Register cannot give remote rights to the region.
    pub remote: bool,
    /// Access rights of the region.
    pub access: Access,
}

/// The arguments of Register Shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedRegistration {
    /// The new region's PD.
    pub pd: PdId,
    /// Key of the new region.
    pub key: StagKey,
    /// TO of the first byte. A virtual address must match the First Byte Offset of the shared list.
    pub base: ToBase,
    /// The Remote Access Flag of the new region.
    pub remote: bool,
    /// Access rights of the new region.
    pub access: Access,
}

/// The arguments of a Fast-Register Work Request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastRegistration {
    /// Index of an STag in Invalid state, and the new Key.
    pub stag: Stag,
    /// Memory of the region. The list may have at most the number of entries that
    /// [`RegionAttributes::pbl_entries`] reports for the STag.
    pub list: PhysicalBufferList,
    /// TO of the first byte.
    pub base: ToBase,
    /// Access rights of the region.
    pub access: Access,
}

/// Result of a registration or an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// STag of the region.
    pub stag: Stag,
    /// Number of entries that the region's list can have. It is at least the requested number.
    pub pbl_entries: u32,
}

/// The result of the verb Query MR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionAttributes {
    /// PD of the region.
    pub pd: PdId,
    /// Key of the region. `None` in Invalid state.
    pub key: Option<StagKey>,
    /// State of the STag.
    pub state: StagState,
    /// Kind of the region: Shared or Non-Shared.
    pub kind: RegionKind,
    /// The Remote Access Flag.
    pub remote: bool,
    /// Number of entries that the region's list can have.
    pub pbl_entries: u32,
    /// Access rights of the region. `None` in Invalid state.
    pub access: Option<Access>,
}

impl Region {
    /// Creates a Non-Shared region in Invalid state.
    fn new(pd: PdId, key: StagKey, remote: bool, capacity: u32) -> Self {
        Region {
            pd,
            key,
            kind: RegionKind::NonShared,
            remote,
            capacity,
            base: ToBase::ZeroBased,
            access: Access::default(),
            windows: 0,
            mapping: None,
        }
    }

    fn state(&self) -> StagState {
        if self.mapping.is_some() { StagState::Valid } else { StagState::Invalid }
    }
}

impl Memory {
    /// Allocate Non-Shared MR STag: allocates an STag in Invalid state, for Fast-Register or
    /// RI-Reregister. Fast-Register then accepts lists of at most `pbl_entries` entries.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`. `InsufficientResources`: too many regions, or
    /// `pbl_entries` exceeds the limit for a list.
    pub fn allocate_stag(&mut self, pd: PdId, pbl_entries: u32, remote: bool) -> Result<Registered, MemoryError> {
        self.check_open()?;
        reject_if(!self.pds.contains_key(&pd), MemoryError::InvalidPdId)?;
        reject_if(pbl_entries > self.settings.max_pbl_entries, MemoryError::InsufficientResources)?;
        let key = StagKey(0);
        let index = self.insert_region(Region::new(pd, key, remote, pbl_entries))?;
        Ok(Registered { stag: Stag { index, key }, pbl_entries })
    }

    /// Register Non-Shared MR (RI-Register): creates a region in Valid state.
    ///
    /// # Errors
    /// All errors of draft Figure 33 except `InvalidStagIndex` and `WindowsStillBound`. An error
    /// creates no region.
    pub fn register(&mut self, registration: &Registration) -> Result<Registered, MemoryError> {
        self.check_open()?;
        let region = self.new_region(registration)?;
        let pbl_entries = region.capacity;
        let index = self.insert_region(region)?;
        Ok(Registered { stag: Stag { index, key: registration.key }, pbl_entries })
    }

    /// Reregister Non-Shared MR (RI-Reregister): replaces all attributes of a Non-Shared region,
    /// which can be Valid or Invalid. The Index does not change.
    ///
    /// # Errors
    /// `InvalidRnicHandle`. `InvalidStagIndex` and `WindowsStillBound` leave the region unchanged.
    /// With any other error of draft Figure 33, the region is deallocated (VERBS-7.3.2.3-8).
    pub fn reregister(&mut self, index: StagIndex, registration: &Registration) -> Result<Registered, MemoryError> {
        self.check_open()?;
        let old = self.region(index)?;
        reject_if(old.kind == RegionKind::Shared, MemoryError::InvalidStagIndex)?;
        reject_if(old.windows > 0, MemoryError::WindowsStillBound)?;
        let old_capacity = old.capacity;
        let mut region = match self.new_region(registration) {
            Ok(region) => region,
            Err(error) => {
                self.deallocate_stag(index)?;
                return Err(error);
            }
        };
        region.capacity = region.capacity.max(old_capacity);
        let pbl_entries = region.capacity;
        self.adopt(&region);
        let old = std::mem::replace(self.region_mut(index)?, region);
        self.remove_pd_member(old.pd);
        self.release(old.mapping);
        Ok(Registered { stag: Stag { index, key: registration.key }, pbl_entries })
    }

    /// Register Shared MR: creates another region, with its own rights, for the memory of
    /// `existing`. After this verb, both regions are Shared.
    ///
    /// # Errors
    /// `InvalidStagIndex` if `existing` is not a Valid region or has another Key.
    /// `InvalidRnicHandle`, `InvalidPdId`, `InvalidAccessRights`, `InvalidVirtualAddress`,
    /// `InsufficientResources`.
    pub fn register_shared(&mut self, existing: Stag, new: &SharedRegistration) -> Result<Stag, MemoryError> {
        self.check_open()?;
        let old = self.region(existing.index)?;
        let mapping = old.mapping.clone().filter(|_| old.key == existing.key).ok_or(MemoryError::InvalidStagIndex)?;
        let capacity = old.capacity;
        reject_if(!self.pds.contains_key(&new.pd), MemoryError::InvalidPdId)?;
        check_access(new.access, new.remote)?;
        mapping.check_base(new.base)?;
        let SharedRegistration { pd, key, base, remote, access } = *new;
        let (kind, mapping) = (RegionKind::Shared, Some(mapping));
        let region = Region { kind, base, access, mapping, ..Region::new(pd, key, remote, capacity) };
        let index = self.insert_region(region)?;
        self.region_mut(existing.index)?.kind = RegionKind::Shared;
        Ok(Stag { index, key: new.key })
    }

    /// Fast-Register: changes an STag from Invalid to Valid. `pd` is the PD of the Queue Pair,
    /// which must be allowed to use Fast-Register.
    ///
    /// # Errors
    /// The status for the completion of the Work Request. An error does not change the STag.
    pub(crate) fn fast_register(&mut self, pd: PdId, new: &FastRegistration) -> Result<(), FastRegisterError> {
        let old = self.region(new.stag.index).map_err(|_| FastRegisterError::InvalidStag)?;
        reject_if(old.kind == RegionKind::Shared, FastRegisterError::InvalidStag)?;
        reject_if(old.pd != pd, FastRegisterError::InvalidPdId)?;
        reject_if(old.state() == StagState::Valid, FastRegisterError::NotInvalid)?;
        reject_if(new.list.entries.len() > old.capacity as usize, MappingError::TooLong)?;
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

    /// Query MR: returns the attributes of a region.
    ///
    /// # Errors
    /// `InvalidRnicHandle`. `InvalidStagIndex` if the Index does not exist or belongs to a window.
    pub fn query_region(&self, index: StagIndex) -> Result<RegionAttributes, MemoryError> {
        self.check_open()?;
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

    /// Creates a Valid region for `registration`. The caller then counts the region in its PD and
    /// pins its buffers ([`adopt`](Self::adopt)).
    fn new_region(&self, registration: &Registration) -> Result<Region, MemoryError> {
        let Registration { pd, key, ref list, base, remote, access } = *registration;
        reject_if(!self.pds.contains_key(&pd), MemoryError::InvalidPdId)?;
        let entries = u32::try_from(list.entries.len()).unwrap_or(u32::MAX);
        reject_if(entries > self.settings.max_pbl_entries, MemoryError::InsufficientResources)?;
        check_access(access, remote)?;
        let mapping = Some(Arc::new(Mapping::new(&self.arena, self.settings.mode, list, base)?));
        Ok(Region { base, access, mapping, ..Region::new(pd, key, remote, entries) })
    }

    fn insert_region(&mut self, region: Region) -> Result<StagIndex, MemoryError> {
        reject_if(self.regions >= self.settings.max_regions, MemoryError::InsufficientResources)?;
        self.adopt(&region);
        self.insert(Entry::Region(region))
    }

    /// Counts the region in its PD, and pins the buffers of its mapping.
    fn adopt(&mut self, region: &Region) {
        // The callers have checked that the PD exists.
        let _ = self.add_pd_member(region.pd);
        // If several STags share a list, only the first registration pins the buffers of the list.
        if let Some(mapping) = &region.mapping
            && region.kind == RegionKind::NonShared
        {
            self.pin(mapping);
        }
    }

    fn pin(&mut self, mapping: &Mapping) {
        mapping.slots().for_each(|slot| self.arena.pin(slot));
    }

    /// Unpins the buffers of a mapping if no other region uses the mapping.
    pub(super) fn release(&mut self, mapping: Option<Arc<Mapping>>) {
        if let Some(mapping) = mapping.and_then(Arc::into_inner) {
            mapping.slots().for_each(|slot| self.arena.unpin(slot));
        }
    }

    /// The buffer list mode in which the RNIC was opened.
    #[must_use]
    pub fn list_mode(&self) -> ListMode {
        self.settings.mode
    }
}

/// Checks rights against Figure 18 and the Remote Access Flag (VERBS-7.4-6).
fn check_access(access: Access, remote: bool) -> Result<(), MappingError> {
    if access.is_valid() && (remote || !access.is_remote()) { Ok(()) } else { Err(MappingError::AccessRights) }
}
