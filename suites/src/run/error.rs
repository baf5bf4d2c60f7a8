//! Errors of a run.

use std::path::PathBuf;

use crate::store::StoreError;
use crate::targets::OpenError;

/// Why a run could not go on. The target's behaviour is never an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target cannot be had.
    #[error(transparent)]
    Target(#[from] OpenError),
    /// The interface that is to be captured on cannot be had.
    #[error(transparent)]
    Capture(#[from] weft_capture::OpenError),
    /// The results store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no run to go on with, or it was not one of these suites against this target.
    #[error("{0}")]
    Resume(String),
    /// Another run writes there now.
    #[error("{path}: another run writes into this folder: wait for its end, or choose another folder", path = path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A file of the run's folder cannot be written.
    #[error("{path}: {error}", path = path.display())]
    Write {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}
