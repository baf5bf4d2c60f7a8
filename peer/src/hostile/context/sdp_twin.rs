//! State of the hostile endpoint for one SDP connection.

use std::collections::VecDeque;

use super::sdp::SdpKept;
use crate::hostile::Deviations;
use crate::sdp::Output;

/// State of the hostile endpoint for one SDP connection.
#[derive(Debug)]
pub(crate) struct SdpTwin {
    pub(crate) deviations: Deviations,
    pub(crate) kept: SdpKept,
    /// Outputs to carry out before the machine is polled again.
    pub(crate) out: VecDeque<Output>,
}

impl SdpTwin {
    /// Returns `None` for the correct endpoint.
    pub(crate) fn of(deviations: Deviations) -> Option<Box<Self>> {
        let twin = |deviations| Box::new(SdpTwin { deviations, kept: SdpKept::default(), out: VecDeque::new() });
        (!deviations.is_empty()).then(|| twin(deviations))
    }
}
