//! What the monitor found on the wire of a case, whatever the case itself was about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_core::requirement::Severity;

/// A finding of the monitor in the traffic of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// The requirement that the octets break.
    #[schemars(with = "String")]
    pub requirement: RequirementId,
    /// How loudly it is reported.
    #[schemars(with = "String")]
    pub severity: Severity,
    /// What was found, in words.
    pub text: String,
    /// Number of the packet in the case's pcapng, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<u64>,
    /// `true`: the target did it. `false`: the tester did, as its stimulus wanted.
    pub by_target: bool,
}
