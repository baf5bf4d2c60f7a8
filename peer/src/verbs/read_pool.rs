//! Common pools of IRD and ORD for all Queue Pairs of an RNIC (draft-hilland-rddp-verbs section
//! 6.5). The settings decide whether the RNIC has these pools.

use super::RnicSettings;
use super::error::QpError;

/// Remaining IRD and ORD of the two pools. `None` if there is no pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadPool {
    ird: Option<u32>,
    ord: Option<u32>,
}

impl ReadPool {
    pub(super) fn new(settings: &RnicSettings) -> Self {
        let pool = |size: u32| (size > 0).then_some(size);
        ReadPool { ird: pool(settings.rnic_ird), ord: pool(settings.rnic_ord) }
    }

    /// Takes IRD and ORD from the pools. Returns the IRD and ORD that were taken. If a pool has
    /// less than requested, the function takes all that the pool has.
    ///
    /// # Errors
    /// `InsufficientResources`: IRD or ORD is requested and its pool is empty (VERBS-6.5-3). An
    /// error takes nothing from the pools.
    pub(super) fn take(&mut self, ird: u32, ord: u32) -> Result<(u32, u32), QpError> {
        let given = |left: Option<u32>, wanted: u32| match left {
            Some(0) if wanted > 0 => Err(QpError::InsufficientResources),
            Some(left) => Ok(wanted.min(left)),
            None => Ok(wanted),
        };
        let (ird, ord) = (given(self.ird, ird)?, given(self.ord, ord)?);
        self.ird = self.ird.map(|left| left - ird);
        self.ord = self.ord.map(|left| left - ord);
        Ok((ird, ord))
    }

    /// Returns IRD and ORD to the pools.
    pub(super) fn give_back(&mut self, ird: u32, ord: u32) {
        self.ird = self.ird.map(|left| left.saturating_add(ird));
        self.ord = self.ord.map(|left| left.saturating_add(ord));
    }
}
