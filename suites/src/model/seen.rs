//! The monitor's findings in the traffic of a case, independent of the case's subject.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_core::requirement::Severity;

/// A finding of the monitor in the traffic of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// The requirement that the bytes violate.
    #[schemars(with = "String")]
    pub requirement: RequirementId,
    /// Its severity.
    #[schemars(with = "String")]
    pub severity: Severity,
    /// What was found, as text.
    pub text: String,
    /// Number of the packet in the case's pcapng, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<u64>,
    /// `true`: caused by the target. `false`: caused by the tester, as part of its stimulus.
    pub by_target: bool,
}
