//! Compares the verdict of a run with the verdict of the previous run.

use serde::Serialize;
use weft_suites::model::{ExitCode, RunStatus};
use weft_suites::store::{RunRecord, RunsPage, Store, StoreError};

/// Maximum number of earlier runs among which a comparable run is searched.
const EARLIER: u32 = 100;

/// The verdict of a run on its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TargetVerdict {
    Passed,
    Failed,
    Down,
}

/// The message about a changed verdict.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    target: String,
    /// The verdict of the previous run.
    before: TargetVerdict,
    after: TargetVerdict,
    /// Id of the run.
    run: String,
    /// Id of the previous run.
    previous: String,
    /// The reasons for the verdict, as text.
    reasons: Vec<String>,
}

/// Returns the change of the verdict by this run, if there is one.
///
/// # Errors
/// The store fails.
pub(super) async fn change(store: &Store, run: &str) -> Result<Option<Change>, StoreError> {
    let Some(record) = store.record(run).await? else { return Ok(None) };
    let Some(after) = verdict(&record) else { return Ok(None) };
    let target = record.info.target.name.clone();
    let page = RunsPage { target: Some(&target), before: Some(run), limit: EARLIER, ..RunsPage::default() };
    let earlier = store.runs_of(page).await?;
    let mut comparable = earlier.iter().filter(|earlier| is_comparable(earlier, &record));
    let Some((previous, before)) = comparable.find_map(|earlier| Some((earlier, verdict(earlier)?))) else {
        return Ok(None);
    };
    let previous = previous.info.id.clone();
    let reasons = record.summary.map(|summary| summary.reasons).unwrap_or_default();
    let change = Change { target, before, after, run: run.to_owned(), previous, reasons };
    Ok(Some(change).filter(|change| change.before != change.after))
}

/// Returns the verdict of a run. Returns `None` if the run decided nothing: it was stopped, its
/// results are inconclusive although the target answers, or the tester failed.
fn verdict(record: &RunRecord) -> Option<TargetVerdict> {
    let summary = record.summary.as_ref()?;
    if summary.target_down.is_some() {
        return Some(TargetVerdict::Down);
    }
    match summary.exit_code {
        _ if record.status != RunStatus::Done => None,
        ExitCode::AsExpected => Some(TargetVerdict::Passed),
        ExitCode::Unexpected => Some(TargetVerdict::Failed),
        ExitCode::NothingRun | ExitCode::Inconclusive | ExitCode::HarnessError => None,
    }
}

/// Returns whether two runs have the same suites and the same kind of plan. Selections are
/// comparable if they have the same number of cases. Reruns are not comparable.
fn is_comparable(earlier: &RunRecord, later: &RunRecord) -> bool {
    let (a, b) = (&earlier.info, &later.info);
    a.suites == b.suites
        && a.is_selection == b.is_selection
        && a.rerun_of.is_none()
        && b.rerun_of.is_none()
        && (!a.is_selection || earlier.planned == later.planned)
}
