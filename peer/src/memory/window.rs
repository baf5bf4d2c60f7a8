//! Memory Windows (draft-hilland-rddp-verbs section 7.10). Each window gives the peer of one Queue
//! Pair access to a range of a region.

use super::access::Accessor;
use super::region::StagState;
use super::{BindError, Entry, Memory, MemoryError, PdId, QpId, RemoteAccess, Stag, StagIndex, StagKey, ToBase};
use crate::reject::reject_if;

#[derive(Debug)]
pub(super) struct Window {
    /// The PD to which the window belongs. Work Requests check this PD only while the window is in
    /// Invalid state.
    pub(super) pd: PdId,
    /// The bound range. `None` in Invalid state.
    pub(super) binding: Option<Binding>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Binding {
    pub(super) qp: QpId,
    pub(super) key: StagKey,
    pub(super) region: StagIndex,
    /// Offset of the window in the region in bytes.
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) base: ToBase,
    pub(super) access: RemoteAccess,
}

/// The arguments of a Bind Work Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind {
    /// Index of a window in Invalid state, and the new Key.
    pub window: Stag,
    /// A Valid region that is VA based and permits windows.
    pub region: Stag,
    /// Virtual address at which the window begins in the region.
    pub address: u64,
    /// Length of the window in bytes.
    pub length: u64,
    /// True: the first byte of the window has the TO `address`. False: the first byte has TO 0.
    pub va_based: bool,
    /// Access rights of the peer.
    pub access: RemoteAccess,
}

/// The result of the verb Query MW.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAttributes {
    /// PD of the window.
    pub pd: PdId,
    /// Key of the window. `None` in Invalid state.
    pub key: Option<StagKey>,
    /// State of the window's STag.
    pub state: StagState,
    /// Access rights of the peer. No rights in Invalid state.
    pub access: RemoteAccess,
}

impl Memory {
    /// Allocate MW: creates a window in Invalid state.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `InsufficientResources`.
    pub fn allocate_window(&mut self, pd: PdId) -> Result<StagIndex, MemoryError> {
        self.check_open()?;
        reject_if(self.windows >= self.settings.max_windows, MemoryError::InsufficientResources)?;
        self.add_pd_member(pd)?;
        self.insert(Entry::Window(Window { pd, binding: None }))
    }

    /// Query MW: returns the attributes of a window.
    ///
    /// # Errors
    /// `InvalidRnicHandle`. `InvalidStagIndex` if the Index does not exist or belongs to a region.
    pub fn query_window(&self, index: StagIndex) -> Result<WindowAttributes, MemoryError> {
        self.check_open()?;
        let Some(Entry::Window(window)) = self.entry(index) else { return Err(MemoryError::InvalidStagIndex) };
        Ok(WindowAttributes {
            pd: window.pd,
            key: window.binding.map(|binding| binding.key),
            state: if window.binding.is_some() { StagState::Valid } else { StagState::Invalid },
            access: window.binding.map(|binding| binding.access).unwrap_or_default(),
        })
    }

    /// Bind MW: checks the eight conditions of draft section 7.10.6.1, and binds the window. The
    /// caller has checked that the Queue Pair may bind windows.
    ///
    /// # Errors
    /// The status for the completion of the Work Request. An error does not change the window.
    pub(crate) fn bind(&mut self, by: Accessor, bind: &Bind) -> Result<(), BindError> {
        let Some(Entry::Window(window)) = self.entry(bind.window.index) else { return Err(BindError::InvalidWindow) };
        reject_if(window.binding.is_some(), BindError::NotInvalid)?;
        let region = self.region(bind.region.index).map_err(|_| BindError::InvalidRegion)?;
        let mapping = region.mapping.as_ref().filter(|_| region.key == bind.region.key);
        let mapping = mapping.ok_or(BindError::InvalidRegion)?;
        reject_if(window.pd != by.pd || region.pd != by.pd, BindError::InvalidPdId)?;
        let ToBase::VaBased(first) = region.base else { return Err(BindError::InvalidRegion) };
        reject_if(!region.access.bind || !bind.access.may_be_bound_to(region.access), BindError::AccessViolation)?;
        let end = bind.address.checked_add(bind.length).ok_or(BindError::Wrap)?;
        let offset = bind.address.checked_sub(first).ok_or(BindError::BaseAndBounds)?;
        reject_if(offset > mapping.length || end - first > mapping.length, BindError::BaseAndBounds)?;
        let base = if bind.va_based { ToBase::VaBased(bind.address) } else { ToBase::ZeroBased };
        let binding = Binding {
            qp: by.qp,
            key: bind.window.key,
            region: bind.region.index,
            offset,
            length: bind.length,
            base,
            access: bind.access,
        };
        if let Ok(region) = self.region_mut(bind.region.index) {
            region.windows += 1;
        }
        *self.bound.entry(by.qp).or_default() += 1;
        if let Some(Entry::Window(window)) = self.entry_mut(bind.window.index) {
            window.binding = Some(binding);
        }
        Ok(())
    }

    /// Number of Valid windows that are bound to a Queue Pair.
    pub(crate) fn windows_bound_to(&self, qp: QpId) -> usize {
        self.bound.get(&qp).copied().unwrap_or(0)
    }

    /// Subtracts a window from the counts of its region and Queue Pair.
    pub(super) fn unbind(&mut self, window: &Window) {
        let Some(binding) = window.binding else { return };
        if let Ok(region) = self.region_mut(binding.region) {
            region.windows -= 1;
        }
        if let Some(count) = self.bound.get_mut(&binding.qp) {
            *count -= 1;
            if *count == 0 {
                self.bound.remove(&binding.qp);
            }
        }
    }
}
