//! State of the hostile endpoint for one SDP connection.

use std::collections::VecDeque;

use super::sdp::SdpDeviationState;
use crate::hostile::Deviations;
use crate::sdp::Output;

/// State of the hostile endpoint for one SDP connection.
#[derive(Debug, Default)]
pub(crate) struct SdpHostile {
    pub(crate) deviations: Deviations,
    pub(crate) state: SdpDeviationState,
    /// Outputs to carry out before the machine is polled again.
    pub(crate) out: VecDeque<Output>,
}

impl SdpHostile {
    /// Creates the state for these deviations. `None` for the correct endpoint, which has no
    /// deviations.
    pub(crate) fn of(deviations: Deviations) -> Option<Box<Self>> {
        (!deviations.is_empty()).then(|| Box::new(SdpHostile { deviations, ..SdpHostile::default() }))
    }
}
