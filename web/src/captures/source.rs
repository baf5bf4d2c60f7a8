//! A capture file.

use std::path::PathBuf;
use std::time::SystemTime;

/// A capture file and its state at the time of a request. The caches compare all fields, so a file
/// that has changed is read again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    pub(crate) changed: SystemTime,
}
