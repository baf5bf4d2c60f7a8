//! Ends runs of a killed server: writes a summary of their finished cases.

use std::path::Path;

use weft_suites::folder;
use weft_suites::model::{RunStatus, Summary};
use weft_suites::store::{Store, StoreError};

/// Writes the summary of the run whose files are at the top of `out`, if it is unfinished and no
/// process is writing there.
pub(super) async fn settle(store: &Store, out: &Path) {
    let Some(left) = folder::left(out) else { return };
    if let Err(error) = sum_up(store, left.run()).await {
        tracing::error!("run {}: {error}", left.run());
    }
}

async fn sum_up(store: &Store, run: &str) -> Result<(), StoreError> {
    let Some(record) = store.record(run).await?.filter(|record| record.summary.is_none()) else { return Ok(()) };
    let Some(report) = store.report(run).await? else { return Ok(()) };
    let (planned, duration_us) = (record.planned, report.summary.duration_us);
    let summary = Summary::of(RunStatus::Cancelled, planned, &report.results, duration_us);
    tracing::info!("run {run} was interrupted; {} of {planned} cases are finished", report.results.len());
    store.finish(run, &summary).await
}
