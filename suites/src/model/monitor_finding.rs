//! The monitor's findings in the traffic of a case. The monitor also checks requirements that the
//! case does not judge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_core::requirement::Severity;

/// A finding of the monitor in the traffic of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Seen")]
pub struct MonitorFinding {
    /// The requirement that the bytes violate.
    #[schemars(with = "String")]
    pub requirement: RequirementId,
    /// Severity of the finding.
    #[schemars(with = "String")]
    pub severity: Severity,
    /// Description of the finding.
    pub text: String,
    /// Number of the packet in the case's pcapng, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<u64>,
    /// `true` if the target caused the finding. `false` if the tester caused it, as part of its
    /// stimulus.
    pub by_target: bool,
}
