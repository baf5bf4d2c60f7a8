//! Reruns of cases.
//!
//! The screen does not start runs. The program that opens the screen passes a function that starts
//! reruns. The events of reruns arrive on the same stream as the events of the run.

use weft_suites::model::{CaseKey, ExitCode, RunStatus, Summary, TargetInfo};

/// A request of the user to the program that executes runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerRequest {
    /// Rerun these cases.
    Rerun(Vec<CaseKey>),
    /// Rerun these cases until a result is not as expected, or until [`RunnerRequest::Stop`].
    UntilFailure(Vec<CaseKey>),
    /// Stop the run or rerun. The results of finished cases remain.
    Stop,
}

/// The function that starts and stops reruns, and the name of their folder.
pub struct RerunStarter {
    /// Name of the folder for reruns, in the folder of the run.
    pub folder: String,
    /// Handles a request. Must return at once, before the rerun has finished.
    pub start: Box<dyn Fn(RunnerRequest) + Send>,
}

/// The state of a rerun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RerunRounds {
    pub(crate) until_failure: bool,
    /// The number of the current round, from 1. 0 before the first round has started.
    pub(crate) round: u64,
}

impl RerunRounds {
    pub(crate) fn new(until_failure: bool) -> Self {
        RerunRounds { until_failure, round: 0 }
    }

    /// Returns whether the round with this summary was the last round.
    pub(crate) fn is_over(self, summary: &Summary) -> bool {
        !self.until_failure || summary.status != RunStatus::Done || summary.exit_code != ExitCode::AsExpected
    }

    pub(crate) fn text(self) -> String {
        match self {
            RerunRounds { round: 0, .. } => "rerun: starting".to_owned(),
            RerunRounds { until_failure: true, round } => format!("rerun until failure, round {round}"),
            RerunRounds { until_failure: false, .. } => "rerun".to_owned(),
        }
    }
}

/// Returns the shell command that reruns a case of a stored run.
pub(crate) fn command(target: &TargetInfo, key: &CaseKey) -> String {
    let name = &target.name;
    // A target that is not built in has a file, usually with the name of the target.
    let argument = if name.starts_with("builtin") { name.clone() } else { format!("{name}.toml") };
    let deviations: String = target.deviations.iter().map(|name| format!(" --deviate {name}")).collect();
    format!("weft test {argument}{deviations} '{key}'")
}
