//! Memory Windows: a range of a region, for the peer of one Queue Pair (draft section 7.10).

use super::access::Accessor;
use super::region::StagState;
use super::{BindError, Entry, Memory, MemoryError, PdId, QpId, RemoteAccess, Stag, StagIndex, StagKey, ToBase};

#[derive(Debug)]
pub(super) struct Window {
    /// The PD it is counted in, and that matters while it is Invalid.
    pub(super) pd: PdId,
    /// Where it is, when Valid.
    pub(super) binding: Option<Binding>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Binding {
    pub(super) qp: QpId,
    pub(super) key: StagKey,
    pub(super) region: StagIndex,
    /// Octets of the region before it.
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) base: ToBase,
    pub(super) access: RemoteAccess,
}

/// The arguments of a Bind work request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind {
    /// Index of a window in Invalid state, and its Key from now on.
    pub window: Stag,
    /// A Valid region that is VA based and permits windows.
    pub region: Stag,
    /// Where in the region it begins: a virtual address of the region.
    pub address: u64,
    /// Its octets.
    pub length: u64,
    /// Offsets through the window count from `address` (true), or from 0.
    pub va_based: bool,
    /// What peers may do.
    pub access: RemoteAccess,
}

/// The result of Query MW.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAttributes {
    /// The PD.
    pub pd: PdId,
    /// The Key, in Valid state.
    pub key: Option<StagKey>,
    /// The state.
    pub state: StagState,
    /// The rights; none in Invalid state.
    pub access: RemoteAccess,
}

impl Memory {
    /// Allocate MW: a window in Invalid state.
    ///
    /// # Errors
    /// `InvalidPdId`, `InsufficientResources`.
    pub fn allocate_window(&mut self, pd: PdId) -> Result<StagIndex, MemoryError> {
        if self.windows >= self.settings.max_windows {
            return Err(MemoryError::InsufficientResources);
        }
        self.join_pd(pd)?;
        self.insert(Entry::Window(Window { pd, binding: None }))
    }

    /// Query MW.
    ///
    /// # Errors
    /// `InvalidStagIndex`, also for a region's.
    pub fn query_window(&self, index: StagIndex) -> Result<WindowAttributes, MemoryError> {
        let Some(Entry::Window(window)) = self.entry(index) else { return Err(MemoryError::InvalidStagIndex) };
        Ok(WindowAttributes {
            pd: window.pd,
            key: window.binding.map(|binding| binding.key),
            state: if window.binding.is_some() { StagState::Valid } else { StagState::Invalid },
            access: window.binding.map(|binding| binding.access).unwrap_or_default(),
        })
    }

    /// Bind MW, on a Queue Pair that is enabled for it: the eight conditions of draft section
    /// 7.10.6.1.
    ///
    /// # Errors
    /// The completion status; the window is as it was.
    pub fn bind(&mut self, by: Accessor, bind: &Bind) -> Result<(), BindError> {
        let Some(Entry::Window(window)) = self.entry(bind.window.index) else { return Err(BindError::InvalidWindow) };
        if window.binding.is_some() {
            return Err(BindError::NotInvalid);
        }
        let region = self.region(bind.region.index).map_err(|_| BindError::InvalidRegion)?;
        let Some(mapping) = region.mapping.as_ref().filter(|_| region.key == bind.region.key) else {
            return Err(BindError::InvalidRegion);
        };
        if window.pd != by.pd || region.pd != by.pd {
            return Err(BindError::InvalidPdId);
        }
        let ToBase::VaBased(first) = region.base else { return Err(BindError::InvalidRegion) };
        if !region.access.bind || !bind.access.may_be_bound_to(region.access) {
            return Err(BindError::AccessViolation);
        }
        let end = bind.address.checked_add(bind.length).ok_or(BindError::Wrap)?;
        let offset = bind.address.checked_sub(first).ok_or(BindError::BaseAndBounds)?;
        if offset > mapping.length || end - first > mapping.length {
            return Err(BindError::BaseAndBounds);
        }
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

    /// Valid windows that are bound to a Queue Pair.
    #[must_use]
    pub fn windows_bound_to(&self, qp: QpId) -> usize {
        self.bound.get(&qp).copied().unwrap_or(0)
    }

    /// Counts a window out of its region and Queue Pair.
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
