//! Invalidation of regions and windows, by Work Requests and by peers (draft-hilland-rddp-verbs
//! sections 7.8, 7.10.4 and 7.10.6.3).

use super::access::Accessor;
use super::{Entry, InvalidateError, Memory, RegionKind, Stag};
use crate::reject::reject_if;

/// The source of an invalidation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum InvalidateBy {
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
    /// The reason for the rejection. An error does not change the STag.
    pub(crate) fn invalidate(
        &mut self,
        accessor: Accessor,
        by: InvalidateBy,
        stag: u32,
    ) -> Result<(), InvalidateError> {
        let stag = Stag::from_bits(stag).ok_or(InvalidateError::InvalidStag)?;
        if self.keeps_revoked && by == InvalidateBy::Local {
            return Ok(());
        }
        match self.entry_mut(stag.index).ok_or(InvalidateError::InvalidStag)? {
            Entry::Region(region) => {
                reject_if(region.kind == RegionKind::Shared, InvalidateError::InvalidStag)?;
                reject_if(region.pd != accessor.pd, InvalidateError::NotAssociated)?;
                if region.mapping.is_none() {
                    return Ok(());
                }
                reject_if(region.key != stag.key, InvalidateError::InvalidStag)?;
                let has_right = region.access.is_remote() || by == InvalidateBy::Local;
                reject_if(!has_right || by == (InvalidateBy::Peer { enabled: false }), InvalidateError::NoRight)?;
                reject_if(region.windows > 0, InvalidateError::WindowsBound)?;
                let mapping = region.mapping.take();
                self.release(mapping);
            }
            Entry::Window(window) => {
                let Some(binding) = window.binding else {
                    return if window.pd == accessor.pd { Ok(()) } else { Err(InvalidateError::NotAssociated) };
                };
                reject_if(binding.qp != accessor.qp, InvalidateError::NotAssociated)?;
                reject_if(binding.key != stag.key, InvalidateError::InvalidStag)?;
                reject_if(by == (InvalidateBy::Peer { enabled: false }), InvalidateError::NoRight)?;
                let bound = super::Window { pd: window.pd, binding: window.binding.take() };
                self.unbind(&bound);
                // The draft requires that the window gets the PD of the Queue Pair
                // (VERBS-7.10.4-7). Nothing has to change, because Bind has checked that the two
                // PDs are equal.
            }
        }
        Ok(())
    }
}
