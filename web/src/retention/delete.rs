//! Deletes one run: its results in the store, then its files.

use std::path::{Path, PathBuf};

use weft_suites::folder;
use weft_suites::store::Store;

use crate::failure::Failure;
use crate::starter;

/// Deletes a run that is over.
///
/// # Errors
/// Returns an error if the run is not over, or if the store or a file cannot be changed.
pub(crate) async fn delete(store: &Store, folder: &Path, run: &str, target: &str) -> Result<(), Failure> {
    // The store is first, because only the store knows whether the run is over.
    if !store.delete_run(run).await? {
        return Err(Failure::Conflict("The run is not over. Stop the run, then delete it."));
    }
    let (folders, run) = (folders(folder, target), run.to_owned());
    let work = move || folders.iter().try_for_each(|folder| folder::remove_run(folder, &run));
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten().map_err(Failure::Files)
}

/// Returns the output folders that can contain the files of a run against `target`.
pub(super) fn folders(folder: &Path, target: &str) -> Vec<PathBuf> {
    let of_target = starter::target_folder(target).map(|below| folder.join(below));
    [folder.to_owned()].into_iter().chain(of_target).collect()
}
