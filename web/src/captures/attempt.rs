//! Marks captures that the server did not finish reading. The marks are files, so they survive a
//! restart.
//!
//! The server reads captures in the background. If a capture makes the reader panic, or makes the
//! system kill the server, the same would happen after each restart. So the server creates a hidden
//! file (the *mark file*) next to the capture before it reads the capture, and removes the mark
//! file afterwards. If the mark file of an earlier attempt exists, the server reads the capture
//! only when a user opens the capture.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::id::id;
use super::source::Source;

/// The prefix of the names of mark files. The id of the capture follows.
pub(super) const BEGUN: &str = ".weft-reading-";

/// The mark file of a capture that is being read.
#[derive(Debug)]
pub(super) struct Attempt(PathBuf);

impl Attempt {
    /// Marks the capture. Returns `None` if the folder is not writable.
    pub(super) fn begin(source: &Source) -> Option<Self> {
        let path = source.path.with_file_name(format!("{BEGUN}{}", id(source.path.file_name()?)));
        std::fs::write(&path, state(source)).ok()?;
        Some(Attempt(path))
    }

    /// Removes the mark file. Call this function when the capture was read, or when the server
    /// stops.
    pub(super) fn succeed(self) {
        // If the mark file cannot be removed, the only effect is that the server does not read the
        // capture in the background.
        let _ = std::fs::remove_file(self.0);
    }
}

/// Returns whether the file at `path` is a mark for the current content of the capture.
pub(super) fn is_of(path: &Path, source: &Source) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text == state(source))
}

/// Returns the id of the marked capture if `name` is the name of a mark file, otherwise `None`.
pub(super) fn marked(name: &OsStr) -> Option<&str> {
    name.to_str()?.strip_prefix(BEGUN)
}

/// Returns the content of a mark file: the length and the modification time of the capture.
fn state(source: &Source) -> String {
    let since = source.changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{} {}\n", source.len, since.as_nanos())
}
