//! Finishes runs that a killed server left unfinished: writes a summary of the finished cases.

use std::path::Path;

use weft_suites::folder;
use weft_suites::model::{RunStatus, Summary};
use weft_suites::store::{Store, StoreError};

/// Writes the summary of the run whose files are directly in `out`, if that run is unfinished and
/// no process is writing into `out`.
pub(super) async fn finish_killed(store: &Store, out: &Path) {
    let Some(left) = folder::lock_idle(out) else { return };
    if let Err(error) = sum_up(store, left.run()).await {
        tracing::error!("run {}: {error}", left.run());
    }
}

async fn sum_up(store: &Store, run: &str) -> Result<(), StoreError> {
    let Some(record) = store.record(run).await?.filter(|record| record.summary.is_none()) else { return Ok(()) };
    let Some(report) = store.report(run).await? else { return Ok(()) };
    let (planned, duration_us) = (record.planned, report.summary.duration_us);
    let summary = Summary::of(RunStatus::Cancelled, planned, &report.results, duration_us)
        .with_lost_capabilities(&record.info.target.lost_capabilities);
    tracing::info!("run {run} was interrupted; {} of {planned} cases are finished", report.results.len());
    store.finish(run, &summary).await
}
