//! The documents of the API that are not those of a report.

use schemars::JsonSchema;
use serde::Serialize;
use weft_suites::baseline::BaselineEntry;
use weft_suites::model::{
    CaseInfo, CaseKey, Counts, ExitCode, ExpectedResult, RunInfo, RunStatus, Score, Summary, Verdict,
};
use weft_suites::store::{PlannedCase, RunRecord, TargetRecord};

use crate::starter::{Job, LaneState};

/// A page of runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Runs {
    pub(super) runs: Vec<RunEntry>,
    /// Where there are more: what to ask for as `before`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) older: Option<String>,
}

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunEntry {
    pub(super) run: RunInfo,
    pub(super) status: RunStatus,
    /// Cases with a verdict.
    pub(super) finished: u64,
    /// Cases in all.
    pub(super) planned: u64,
    /// It is not over, was stopped, or plans only a selection of the cases.
    pub(super) partial: bool,
    /// The sum, once the run is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    /// How many requirements hold; left out where none was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<Score>,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Run {
    #[serde(flatten)]
    pub(super) entry: RunEntry,
    /// The cases that were selected, by id.
    pub(super) cases: Vec<CaseInfo>,
}

/// The plan of a run, in its order.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Cases {
    pub(super) cases: Vec<CaseEntry>,
}

/// One line of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CaseEntry {
    pub(super) key: CaseKey,
    /// The key as it stands in addresses (there, what could mean something is escaped once more).
    pub(super) path: String,
    /// What came of it; left out while it is not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<Verdict>,
    /// Wall time in microseconds, once finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_us: Option<u64>,
}

/// The targets that may be started, then those that there are runs of, each by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Targets {
    pub(super) targets: Vec<TargetEntry>,
}

/// A target.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TargetEntry {
    pub(super) name: String,
    /// Runs against it.
    pub(super) runs: u64,
    /// Id of the run that represents it: the newest complete one, else the newest partial one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<String>,
    /// What is done against it, where it may be started from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control: Option<LaneState>,
}

/// A run that will be played.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Accepted {
    pub(super) target: String,
    pub(super) job: Job,
}

/// A target from run to run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Trend {
    pub(super) name: String,
    /// What is done against it, where it may be started from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control: Option<LaneState>,
    /// The newest runs, newest first.
    pub(super) runs: Vec<RunEntry>,
    /// Cases whose verdicts differ in these runs.
    pub(super) unsteady: Vec<UnsteadyEntry>,
}

/// A case whose verdicts differ from run to run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UnsteadyEntry {
    pub(super) key: CaseKey,
    /// In how many of the runs it had which verdict.
    pub(super) counts: Counts,
}

/// What a target's baseline expects.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Baseline {
    /// The entries of its file, where it may be started from here.
    pub(super) entries: Vec<BaselineEntry>,
    /// The run that represents the target; what follows is from there and from its reruns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// Results that were expected.
    pub(super) expected: Vec<ExpectedResult>,
    /// Entries that were no longer true, in words.
    pub(super) stale: Vec<String>,
}

/// A run by the sections of the specifications.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Sections {
    pub(super) sections: Vec<SectionEntry>,
}

/// Requirements of a section, each with the worst of its verdicts.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SectionEntry {
    pub(super) specification: String,
    /// Name of the catalogue.
    pub(super) catalogue: String,
    pub(super) section: String,
    pub(super) held: usize,
    pub(super) broken: usize,
    pub(super) undecided: usize,
    /// Those of the section whose breach shows on the wire or in a reaction.
    pub(super) observable: usize,
}

/// Targets against cases.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Matrix {
    /// The run that represents each target: the newest complete one, else the newest partial one. Results of its reruns count.
    pub(super) runs: Vec<RunEntry>,
    /// Targets that there was no room for.
    pub(super) left_out: usize,
    pub(super) cases: Vec<MatrixLine>,
}

/// A case in each of the runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MatrixLine {
    pub(super) key: CaseKey,
    /// In the order of the runs; `null` where it has none.
    pub(super) verdicts: Vec<Option<Verdict>>,
}

/// Initiators and responders that met.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Pairs {
    pub(super) pairs: Vec<Pair>,
}

/// An initiator and a responder; one of them is weft.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Pair {
    pub(super) initiator: String,
    pub(super) responder: String,
    pub(super) run: String,
    pub(super) status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<ExitCode>,
    /// The target has no complete run.
    pub(super) partial: bool,
    pub(super) score: Score,
}

impl From<RunRecord> for RunEntry {
    fn from(record: RunRecord) -> Self {
        let partial = record.is_partial();
        let RunRecord { info, status, finished, planned, summary } = record;
        RunEntry { run: info, status, finished, planned, partial, summary, score: None }
    }
}

impl From<PlannedCase> for CaseEntry {
    fn from(planned: PlannedCase) -> Self {
        let PlannedCase { key, verdict, duration_us } = planned;
        CaseEntry { path: key.path(), key, verdict, duration_us }
    }
}

impl From<TargetRecord> for TargetEntry {
    fn from(record: TargetRecord) -> Self {
        let TargetRecord { name, runs, last } = record;
        TargetEntry { name, runs, last: Some(last), control: None }
    }
}
