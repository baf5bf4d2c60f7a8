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
        /// The path of the capture.
        path: PathBuf,
        /// The reason.
        source: OpenError,
    },
    /// The capture is not a file, for example a pipe or standard input. Contains the path.
    #[error("{path} is not a file; weft reads a capture more than once, so save it to a file", path = .0.display())]
    NotAFile(PathBuf),
    /// The run cannot be read.
    #[error("{path}: {what}", path = path.display())]
    Run {
        /// The path of the report.
        path: PathBuf,
        /// Why the report cannot be read.
        what: String,
    },
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}
