//! The progress of a run, independent of its verdicts.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl RunStatus {
    /// All statuses, in the order of a run.
    pub const ALL: [RunStatus; 6] = [
        RunStatus::Planned,
        RunStatus::WaitingForTarget,
        RunStatus::Running,
        RunStatus::Done,
        RunStatus::Cancelled,
        RunStatus::Broken,
    ];

    /// Name of the status in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Planned => "planned",
            RunStatus::WaitingForTarget => "waiting-for-target",
            RunStatus::Running => "running",
            RunStatus::Done => "done",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Broken => "broken",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for RunStatus {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        RunStatus::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| format!("no run status is called {word:?}"))
    }
}
