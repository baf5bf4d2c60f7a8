//! Parts that the plain exchanges of all services share. In the control of a failed case, a plain
//! (correct) exchange replaces the step that deviates.

use super::{Progress, RdmaSide, StartUpResult};
use crate::stage::{Attempt, Stop};

impl RdmaSide<'_> {
    /// Returns the state of a connection, so that a plain exchange can continue there.
    pub(in crate::stage) fn progress(&mut self) -> Result<(StartUpResult, Progress), Stop> {
        let progress = self.connections.get(self.number)?.progress;
        Ok((StartUpResult { crc: progress.crc, rtr: None, ird: None }, progress))
    }

    /// Checks that the MSN of the target's first Send is 1 (DDP-4.3-7).
    pub(in crate::stage) fn check_first_msn(&mut self) -> Attempt {
        match self.connections.get(self.number)?.progress.first_msn {
            None | Some(1) => Ok(()),
            Some(msn) => Err(format!("the MSN of its first Send is {msn}").into()),
        }
    }
}
