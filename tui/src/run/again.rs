//! What the user wants run again, and how far that is.
//!
//! The screen starts nothing: who made the run hands in a function that does, and the events of what it starts come in on the same stream.

use weft_suites::model::{CaseKey, ExitCode, RunStatus, Summary, TargetInfo};

/// What the user wants of who runs the cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// These cases once more.
    Again(Vec<CaseKey>),
    /// These cases again and again, until something is not as expected, or [`Wish::Stop`].
    UntilFailure(Vec<CaseKey>),
    /// The run, or what is run again, shall stop; finished cases are kept.
    Stop,
}

/// Starts what the user wants.
pub struct Starter {
    /// Folder of what is run again, below that of the run.
    pub folder: String,
    /// Takes a wish; it must not wait for the wish to come true.
    pub start: Box<dyn Fn(Wish) + Send>,
}

/// What is being run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rounds {
    pub(crate) until_failure: bool,
    /// The one that runs, from 1; 0 before the first has begun.
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

    /// In a few words.
    pub(crate) fn text(self) -> String {
        match self {
            Rounds { round: 0, .. } => "rerun: starting".to_owned(),
            Rounds { until_failure: true, round } => format!("rerun until failure, round {round}"),
            Rounds { until_failure: false, .. } => "rerun".to_owned(),
        }
    }
}

/// The command that runs a case against the target of a stored run.
pub(crate) fn command(target: &TargetInfo, key: &CaseKey) -> String {
    let name = &target.name;
    // What is not built in is described by a file, mostly of its name.
    let target_words = if name.starts_with("builtin") { name.clone() } else { format!("{name}.toml") };
    let deviations: String = target.deviations.iter().map(|name| format!(" --deviate {name}")).collect();
    format!("weft test {target_words}{deviations} '{key}'")
}
