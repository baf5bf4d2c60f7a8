//! Reruns of cases.
//!
//! The screen does not start runs: the creator of the screen passes a function that does. The
//! events of reruns arrive on the same stream.

use weft_suites::model::{CaseKey, ExitCode, RunStatus, Summary, TargetInfo};

/// A request of the user to the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Rerun these cases.
    Again(Vec<CaseKey>),
    /// Rerun these cases until a result is not as expected, or until [`Wish::Stop`].
    UntilFailure(Vec<CaseKey>),
    /// Stop the run or rerun; the results of finished cases remain.
    Stop,
}

/// Starts reruns.
pub struct Starter {
    /// The folder of reruns, in the folder of the run.
    pub folder: String,
    /// Takes a request; must not wait until it is done.
    pub start: Box<dyn Fn(Wish) + Send>,
}

/// The state of a rerun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rounds {
    pub(crate) until_failure: bool,
    /// The current round, from 1; 0 before the first one has started.
    pub(crate) round: u64,
}

impl Rounds {
    pub(crate) fn new(until_failure: bool) -> Self {
        Rounds { until_failure, round: 0 }
    }

    /// Was that the last round?
    pub(crate) fn is_over(self, summary: &Summary) -> bool {
        !self.until_failure || summary.status != RunStatus::Done || summary.exit_code != ExitCode::AsExpected
    }

    pub(crate) fn text(self) -> String {
        match self {
            Rounds { round: 0, .. } => "rerun: starting".to_owned(),
            Rounds { until_failure: true, round } => format!("rerun until failure, round {round}"),
            Rounds { until_failure: false, .. } => "rerun".to_owned(),
        }
    }
}

/// The command that reruns a case of a stored run.
pub(crate) fn command(target: &TargetInfo, key: &CaseKey) -> String {
    let name = &target.name;
    // Other targets have a file, usually with their name.
    let argument = if name.starts_with("builtin") { name.clone() } else { format!("{name}.toml") };
    let deviations: String = target.deviations.iter().map(|name| format!(" --deviate {name}")).collect();
    format!("weft test {argument}{deviations} '{key}'")
}
