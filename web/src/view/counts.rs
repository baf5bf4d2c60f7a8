//! Common parts of pages about runs.

use weft_suites::model::{Counts, RunStatus, Verdict};
use weft_suites::store::RunRecord;

/// Returns why a run is partial, or `None` if the run is complete. A partial run represents its
/// target only if the target has no complete run.
pub(super) fn partial(record: &RunRecord) -> Option<&'static str> {
    match record.status {
        _ if !record.is_partial() => None,
        _ if record.info.rerun_of.is_some() => Some("partial: a rerun"),
        _ if record.info.is_selection => Some("partial: lacks variants of the default tier"),
        RunStatus::Planned | RunStatus::WaitingForTarget | RunStatus::Running => Some("partial: not finished"),
        RunStatus::Done | RunStatus::Cancelled | RunStatus::Broken => Some("partial: stopped"),
    }
}

/// The number of cases with a verdict.
pub(super) struct Count {
    pub(super) verdict: Verdict,
    pub(super) number: u64,
}

/// Returns the verdicts that occur, with their numbers. The worst verdict is first.
pub(super) fn counts(counts: &Counts) -> Vec<Count> {
    let order = Verdict::ALL.into_iter().rev();
    order.map(|verdict| Count { verdict, number: counts.of(verdict) }).filter(|count| count.number > 0).collect()
}
