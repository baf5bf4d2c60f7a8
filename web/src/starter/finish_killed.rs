//! Finishes runs that a killed server left unfinished: writes the reports and a summary of the
//! finished cases, as at the normal end of a run.

use std::path::Path;

use weft_suites::model::RunReport;
use weft_suites::store::{Store, StoreError};
use weft_suites::targets::Target;
use weft_suites::{folder, recover, report};

use super::run_job::JobContext;

/// Writes the reports and the summary of the run against `target` whose files are directly in the
/// output folder, if that run is unfinished and no process is writing into the folder.
pub(super) async fn finish_killed(store: &Store, target: &Target, context: &JobContext) {
    let Some(left) = folder::lock_idle(&context.out) else { return };
    if let Err(error) = finish(store, left.run(), target, context).await {
        tracing::error!("run {}: {error}", left.run());
    }
}

async fn finish(store: &Store, run: &str, target: &Target, context: &JobContext) -> Result<(), StoreError> {
    let Some(report) = recover::interrupted(store, run, &context.suites, target.baseline()).await? else {
        return Ok(());
    };
    let summary = report.summary.clone();
    tracing::info!("run {run} was interrupted; {} of {} cases are finished", report.results.len(), summary.planned);
    // The summary is last. If the server is killed before that, the next server repeats all this.
    if let Err(error) = write(report, &context.out).await {
        tracing::error!("run {run}: {error}");
    }
    store.finish(run, &summary).await
}

/// Writes the report files of a run, on a thread that no page uses.
async fn write(report: RunReport, out: &Path) -> Result<(), String> {
    let out = out.to_owned();
    let work = move || report::write_all(&report, &out).map_err(|error| error.to_string());
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string()).flatten()
}
