//! Errors of a run.

use std::path::PathBuf;

use crate::store::StoreError;
use crate::targets::OpenError;

/// Why a run cannot continue. The target's behaviour is never an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target cannot be opened.
    #[error(transparent)]
    Target(#[from] OpenError),
    /// The interface to capture on cannot be opened.
    #[error(transparent)]
    Capture(#[from] weft_capture::OpenError),
    /// The results store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no run to resume, or the run had other suites or another target.
    #[error("{0}")]
    Resume(String),
    /// Another run is writing into the folder.
    #[error("{path}: another run writes into this folder: wait until that run has finished, or choose another folder", path = path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A case that weft generated does not load.
    #[error("weft generated a case that does not load: {0}; please report this as a bug of weft")]
    Generated(String),
    /// A file of the run's folder cannot be written.
    #[error("cannot write {path}: {error}", path = path.display())]
    Write {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
}
