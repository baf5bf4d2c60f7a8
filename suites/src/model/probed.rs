//! What probes found out about a target, as a run stores it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Capability;
use crate::targets::{SdpStart, Service};

/// What probes found out about a target whose file has no `capabilities`. A run that resumes or
/// repeats the run uses these facts, and does not probe the target again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedFacts {
    /// The capabilities. Empty for a target that speaks SDP.
    pub capabilities: Vec<Capability>,
    /// The service. `None` if weft does not know the program on the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// An MPA Request that the target accepts, as hexadecimal digits and without private data. Only
    /// if the target rejects the Request of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Size in bytes of rping's buffer, if it is not the usual size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rping_size: Option<u32>,
    /// How the target speaks SDP. `None` if it does not speak SDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdp: Option<ProbedSdp>,
}

/// How a target speaks SDP, as in the table `[sdp]` of a target file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedSdp {
    /// The start-up profile.
    pub start: SdpStart,
    /// Whether the fields inside each 32-bit word are in reverse order.
    pub mirrored: bool,
    /// MSeq of the first message after Hello and HelloAck, 0 or 1.
    pub first_mseq: u32,
}
