//! A run's target, time and settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Capability, Role};

/// The facts of a run that are known when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// Unique in a store and sortable by time, for example `20260131T120000.123Z-1f3a`.
    pub id: String,
    /// The target.
    pub target: TargetInfo,
    /// Seed of the run; a case's own seed follows from it and the case's key.
    pub seed: u64,
    /// Start, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Version of weft.
    pub weft_version: String,
    /// It plans less than the default tier of all cases: a selection, a part, the smoke tier, a
    /// rerun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_selection: bool,
    /// Id of the run whose cases it runs again. Its results replace those of that run if the target
    /// is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<String>,
}

/// The target as reports show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetInfo {
    /// Its name.
    pub name: String,
    /// How it is reached, for example `builtin` or `tcp 192.0.2.7:7174`.
    pub reached_by: String,
    /// The role it plays.
    pub role: Role,
    /// What runs on it, for example `echo`.
    pub service: String,
    /// What it declares to be able to do.
    pub capabilities: Vec<Capability>,
    /// Names of the deviations switched on in a builtin target.
    pub deviations: Vec<String>,
}
