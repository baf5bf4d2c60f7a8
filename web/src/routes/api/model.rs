//! The JSON documents of the API, except for documents that also occur in a report.
//!
//! The comments are also the descriptions in the OpenAPI document.

use schemars::JsonSchema;
use serde::Serialize;
use weft_suites::baseline::BaselineEntry;
use weft_suites::model::{
    CaseInfo, CaseKey, Counts, ExitCode, ExpectedResult, RunInfo, RunStatus, Score, Summary, Verdict,
};
use weft_suites::store::{PlannedCase, RunRecord, TargetRecord};

use crate::starter::{Job, QueueState};

/// A page of runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Runs {
    pub(super) runs: Vec<RunEntry>,
    /// If there are older runs: the value of `before` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) older: Option<String>,
}

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunEntry {
    pub(super) run: RunInfo,
    pub(super) status: RunStatus,
    /// Number of cases with a verdict.
    pub(super) finished: u64,
    /// Number of all cases.
    pub(super) planned: u64,
    /// Whether the run is not over, was stopped, or has only a selection of the cases.
    pub(super) partial: bool,
    /// The summary, once the run is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    /// Numbers of requirements by level and result. Omitted if no requirement was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<Score>,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Run {
    #[serde(flatten)]
    pub(super) entry: RunEntry,
    /// The selected cases, in the order of their ids.
    pub(super) cases: Vec<CaseInfo>,
}

/// The plan of a run: its cases, in the order in which they are planned.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Cases {
    pub(super) cases: Vec<CaseEntry>,
}

/// One line of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CaseEntry {
    pub(super) key: CaseKey,
    /// The key as part of a URL path, before percent-encoding.
    pub(super) path: String,
    /// The verdict, once the case is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<Verdict>,
    /// Wall time in microseconds, once the case is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_us: Option<u64>,
}

/// The list of targets. It has two parts: first the targets against which this server can start
/// runs, then the other targets of the store. Each part is in the order of the names.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Targets {
    pub(super) targets: Vec<TargetEntry>,
}

/// A target.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TargetEntry {
    pub(super) name: String,
    /// Number of runs.
    pub(super) runs: u64,
    /// Id of the run that represents the target. This is the newest complete run, or if there is no
    /// complete run, the newest partial run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<String>,
    /// Current and queued runs, if this server can start runs against the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control: Option<QueueState>,
    /// Time of the next scheduled run against the target, in milliseconds since 1970-01-01 UTC.
    /// Omitted if the server's schedule has no run against the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_unix_ms: Option<u64>,
}

/// A run that was queued.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Accepted {
    pub(super) target: String,
    pub(super) job: Job,
}

/// A target and its newest runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Trend {
    pub(super) name: String,
    /// Current and queued runs, if this server can start runs against the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control: Option<QueueState>,
    /// The newest runs, newest first.
    pub(super) runs: Vec<RunEntry>,
    /// Cases whose verdicts differ in these runs.
    pub(super) unsteady: Vec<UnsteadyEntry>,
}

/// A case whose verdicts differ from run to run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UnsteadyEntry {
    pub(super) key: CaseKey,
    /// Number of runs by verdict.
    pub(super) counts: Counts,
}

/// The baseline of a target.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Baseline {
    /// The entries of the baseline file. Empty if this server cannot start runs against the target.
    pub(super) entries: Vec<BaselineEntry>,
    /// Id of the run that represents the target. `expected` and `stale` come from this run and its
    /// reruns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// Results that the baseline expected.
    pub(super) expected: Vec<ExpectedResult>,
    /// Stale entries, as text.
    pub(super) stale: Vec<String>,
}

/// The results of a run by section of the specifications.
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
    /// Number of requirements of the section whose violation shows in packets on the wire or in a
    /// reaction of the target.
    pub(super) observable: usize,
}

/// The verdicts of all targets, by case.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Matrix {
    /// The run that represents each target. This is the newest complete run, or if there is no
    /// complete run, the newest partial run. The results of later reruns replace results of this
    /// run.
    pub(super) runs: Vec<RunEntry>,
    /// Number of targets that are not included.
    pub(super) left_out: usize,
    pub(super) cases: Vec<MatrixLine>,
}

/// The verdicts of a case.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MatrixLine {
    pub(super) key: CaseKey,
    /// One verdict for each run, in the order of `runs`. `null` if the run has no verdict for this
    /// case.
    pub(super) verdicts: Vec<Option<Verdict>>,
}

/// Results by initiator and responder.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Pairs {
    pub(super) pairs: Vec<Pair>,
}

/// The result for an initiator and a responder. One of the two is weft.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Pair {
    pub(super) initiator: String,
    pub(super) responder: String,
    pub(super) run: String,
    pub(super) status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<ExitCode>,
    /// Whether the target has no complete run.
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
        TargetEntry { name, runs, last: Some(last), control: None, next_unix_ms: None }
    }
}
