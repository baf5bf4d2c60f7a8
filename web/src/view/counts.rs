//! Common parts of pages about runs.

use weft_suites::model::{Counts, ExitCode, RunStatus, Verdict};
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

/// Returns the CSS class and the text for the outcome of the run that represents a target.
pub(super) fn outcome(record: &RunRecord) -> (&'static str, &'static str) {
    match record.summary.as_ref().map(|summary| summary.exit_code) {
        None => ("", "not finished"),
        // The class of a partial run is not `pass`. Therefore only a complete run is green.
        Some(ExitCode::AsExpected) => (if record.is_partial() { "" } else { "pass" }, "as expected"),
        Some(ExitCode::Unexpected) => ("fail", "fails"),
        Some(ExitCode::NothingRun) => ("", "no case was run"),
        Some(ExitCode::Inconclusive) => ("inconclusive", "undecided"),
        Some(ExitCode::HarnessError) => ("error", "the tester failed"),
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
