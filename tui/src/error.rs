//! Why a screen cannot be shown.

use std::io;
use std::path::PathBuf;

use weft_dissector::source::OpenError;

/// Why a screen cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The capture cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Capture {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: OpenError,
    },
    /// The capture is a pipe or standard input.
    #[error("{path} is not a file; weft reads the capture more than once, so save it first", path = .0.display())]
    NotAFile(PathBuf),
    /// The run cannot be read.
    #[error("{path}: {what}", path = path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}
