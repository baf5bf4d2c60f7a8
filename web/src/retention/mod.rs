//! Deletes runs: one run for an operator, and old runs by their age and by the size of their files.
//!
//! A limit never deletes a run that is not over, the newest run of a target, or a run whose results
//! represent a target. The database file does not shrink, but reuses the space of deleted runs.

mod delete;
mod limits;

use std::path::{Path, PathBuf};

use tokio::sync::watch;
use weft_suites::folder;
use weft_suites::store::{Store, StoredRun};

use crate::clock::Clock;
use crate::failure::Failure;
pub(crate) use delete::delete;
pub use limits::Retention;

/// Milliseconds between two searches for old runs.
const INTERVAL_MS: u64 = 3_600_000;

/// Deletes old runs now, and then every hour, until `stopped` becomes `true`.
pub(crate) async fn keep(
    limits: Retention,
    store: Store,
    folder: PathBuf,
    clock: Clock,
    mut stopped: watch::Receiver<bool>,
) {
    while limits.is_limited() {
        let now_ms = clock.now_ms();
        if let Err(error) = sweep(limits, &store, &folder, now_ms).await {
            tracing::error!("retention: {error}");
        }
        tokio::select! {
            () = clock.wait_until(now_ms.saturating_add(INTERVAL_MS)) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}

/// Deletes the runs that exceed the limits. A run that cannot be deleted is logged.
async fn sweep(limits: Retention, store: &Store, folder: &Path, now_ms: u64) -> Result<(), Failure> {
    let runs = store.stored_runs().await?;
    let targets = store.targets().await?;
    let runs = with_sizes(runs, folder.to_owned(), limits.size.is_some()).await?;
    let kept = limits::kept(&runs, &targets);
    for (run, why) in limits.surplus(&runs, &kept, now_ms) {
        tracing::info!("audit: retention: deletes run {} of {}, because {why}", run.id, run.target);
        if let Err(error) = delete(store, folder, &run.id, &run.target).await {
            tracing::error!("retention: run {}: {error}", run.id);
        }
    }
    Ok(())
}

/// Adds the sizes of the files of the runs, in bytes. If `is_measured` is `false`, all sizes are 0.
async fn with_sizes(
    runs: Vec<StoredRun>,
    folder: PathBuf,
    is_measured: bool,
) -> Result<Vec<(StoredRun, u64)>, Failure> {
    let measure = move |run: StoredRun| {
        let size: u64 = match is_measured {
            true => delete::folders(&folder, &run.target).iter().map(|own| folder::size_of_run(own, &run.id)).sum(),
            false => 0,
        };
        (run, size)
    };
    let work = move || runs.into_iter().map(measure).collect();
    tokio::task::spawn_blocking(work).await.map_err(|error| Failure::File(std::io::Error::other(error)))
}
