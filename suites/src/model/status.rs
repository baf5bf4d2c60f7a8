//! The progress of a run, independent of its verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::words;

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// The cases are known, but none has started.
    Planned,
    /// A person has to start the target, or to connect it.
    WaitingForTarget,
    /// Cases are being run.
    Running,
    /// All planned cases have a verdict.
    Done,
    /// The run was stopped on request. The finished cases are kept.
    Cancelled,
    /// The process of the run is gone. The finished cases are kept. The store derives this status,
    /// because a killed process writes no status.
    Broken,
}

words!(RunStatus, all: "All statuses, in the order of a run.", unknown: "unknown run status {:?}", {
    Planned => "planned",
    WaitingForTarget => "waiting-for-target",
    Running => "running",
    Done => "done",
    Cancelled => "cancelled",
    Broken => "broken",
});
