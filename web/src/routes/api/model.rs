//! The documents of the API that are not those of a report.

use schemars::JsonSchema;
use serde::Serialize;
use weft_suites::model::{CaseInfo, CaseKey, RunInfo, RunStatus, Summary, Verdict};
use weft_suites::store::{PlannedCase, RunRecord, TargetRecord};

/// Why there is no answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Problem {
    /// In words.
    pub(super) error: String,
}

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
    /// The sum, once the run is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
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

/// The targets that the store has runs of, by name.
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
    /// Id of the newest run that came to its end; where none did, of the newest.
    pub(super) last: String,
}

impl From<RunRecord> for RunEntry {
    fn from(record: RunRecord) -> Self {
        let RunRecord { info, status, finished, planned, summary } = record;
        RunEntry { run: info, status, finished, planned, summary }
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
        TargetEntry { name, runs, last }
    }
}
