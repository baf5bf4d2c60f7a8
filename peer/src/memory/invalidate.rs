//! Invalidation of regions and windows, by Work Requests and by peers (draft sections 7.8, 7.10.4
//! and 7.10.6.3).

use super::access::Accessor;
use super::{Entry, InvalidateError, Memory, RegionKind, Stag};

/// The source of an invalidation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InvalidateBy {
    /// A local Work Request: either "Invalidate Local STag" or "Read with Invalidate Local STag".
    Local,
    /// An inbound Send with Invalidate from the peer.
    Peer {
        /// True if the Queue Pair has at least one remote right enabled.
        enabled: bool,
    },
}

impl Memory {
    /// Changes `stag` (the 32 bits of an STag) to Invalid state, on behalf of the Queue Pair
    /// `accessor`. If the STag is already Invalid, this function changes nothing and ignores the
    /// Key.
    ///
    /// # Errors
    /// The reason for the rejection. The STag is unchanged then.
    pub fn invalidate(&mut self, accessor: Accessor, by: InvalidateBy, stag: u32) -> Result<(), InvalidateError> {
        let stag = Stag::from_bits(stag).ok_or(InvalidateError::InvalidStag)?;
        if self.keeps_revoked && by == InvalidateBy::Local {
            return Ok(());
        }
        match self.entry_mut(stag.index).ok_or(InvalidateError::InvalidStag)? {
            Entry::Region(region) => {
                if region.kind == RegionKind::Shared {
                    return Err(InvalidateError::InvalidStag);
                }
                if region.pd != accessor.pd {
                    return Err(InvalidateError::NotAssociated);
                }
                if region.mapping.is_none() {
                    return Ok(());
                }
                if region.key != stag.key {
                    return Err(InvalidateError::InvalidStag);
                }
                match by {
                    InvalidateBy::Peer { enabled } if !enabled || !region.access.is_remote() => {
                        return Err(InvalidateError::NoRight);
                    }
                    InvalidateBy::Peer { .. } | InvalidateBy::Local => {}
                }
                if region.windows > 0 {
                    return Err(InvalidateError::WindowsBound);
                }
                let mapping = region.mapping.take();
                self.release(mapping);
            }
            Entry::Window(window) => {
                let Some(binding) = window.binding else {
                    return if window.pd == accessor.pd { Ok(()) } else { Err(InvalidateError::NotAssociated) };
                };
                if binding.qp != accessor.qp {
                    return Err(InvalidateError::NotAssociated);
                }
                if binding.key != stag.key {
                    return Err(InvalidateError::InvalidStag);
                }
                if by == (InvalidateBy::Peer { enabled: false }) {
                    return Err(InvalidateError::NoRight);
                }
                let bound = super::Window { pd: window.pd, binding: window.binding.take() };
                self.unbind(&bound);
                // The draft requires that the window's PD becomes that of the Queue Pair
                // (VERBS-7.10.4-7). Bind has checked that both are equal.
            }
        }
        Ok(())
    }
}
