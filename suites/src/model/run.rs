//! A run's target, time and settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Capability, Labels, ProbedFacts, Role};

/// The facts of a run that are known when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// Unique in a store and sortable by time, for example `20260131T120000.123Z-1f3a`.
    pub id: String,
    /// The target.
    pub target: TargetInfo,
    /// Seed of the run. The seed of a case is derived from it and from the case's key.
    pub seed: u64,
    /// Start, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Version of weft.
    pub weft_version: String,
    /// Whether the plan lacks a variant that the default tier of all cases has. Possible reasons
    /// are a selection of cases, `--shard`, the smoke tier, or a rerun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_selection: bool,
    /// Id of the run whose cases this run repeats. The new results replace the old results if the
    /// target is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<String>,
    /// The folder of the suites. Without this field, the run used the built-in suites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suites: Option<String>,
    /// Labels that the user chose with `--label` or in the table `labels` of the target file.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// The target as reports show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetInfo {
    /// The target's name.
    pub name: String,
    /// The target file, as the command line named it. Builtin targets have no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How the tester reaches the target, for example `in process, virtual clock` or `TCP
    /// 192.0.2.7:7174`.
    pub reached_by: String,
    /// The target's role.
    pub role: Role,
    /// The service that runs on the target, for example `echo`.
    pub service: String,
    /// The target's declared capabilities.
    pub capabilities: Vec<Capability>,
    /// Names of the enabled deviations of a builtin target.
    pub deviations: Vec<String>,
    /// Facts about the target, from the table `identity` of the target file: for example the
    /// versions of the firmware, the driver and the kernel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub identity: BTreeMap<String, String>,
    /// Facts that the target's agent reported when the run began: `device` (the name of the
    /// device), `driver`, `firmware`, and `kernel` (of the device's host).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub device: BTreeMap<String, String>,
    /// The capabilities and the service that weft found out by probes before the run, as text. Only
    /// if the target file has no `capabilities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<String>,
    /// The same facts, for a run that resumes or repeats this run. `None` if the target was not
    /// probed, or if the probes found out nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed_facts: Option<ProbedFacts>,
    /// The capabilities that the target lost: probes of an earlier run found them, and the probes
    /// of this run did not. A service on the target counts as a capability.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_capabilities: Vec<Capability>,
}

impl TargetInfo {
    /// Returns the facts about the target with their names: the facts of the target file, then the
    /// facts that the agent reported.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, &str)> {
        let of_file = self.identity.iter().map(|(name, value)| (name.clone(), value.as_str()));
        let of_agent = self.device.iter().map(|(name, value)| (format!("{name} (agent)"), value.as_str()));
        of_file.chain(of_agent).collect()
    }

    /// Returns whether both targets have the same description. The path of the target file, the
    /// facts that the agent reported, the results of probes, and the order of the capabilities are
    /// not part of the description.
    pub(crate) fn has_same_description(&self, other: &TargetInfo) -> bool {
        self.description() == other.description()
    }

    fn description(&self) -> TargetInfo {
        let mut capabilities = self.capabilities.clone();
        capabilities.sort_unstable();
        TargetInfo {
            file: None,
            capabilities,
            device: BTreeMap::new(),
            probed: None,
            probed_facts: None,
            lost_capabilities: Vec::new(),
            ..self.clone()
        }
    }
}
