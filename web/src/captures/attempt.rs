//! Marks captures of the folder whose reading did not finish. The marks survive the server.
//!
//! The server reads captures in the background. A capture that makes the reader panic, or the
//! system kill the server, would do so again after each restart. So a hidden file next to the
//! capture exists while it is read. If that file remains, the server reads the capture only when a
//! user opens it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::id::id;
use super::source::Source;

/// The prefix of the names of these files; the id of the capture follows.
pub(super) const BEGUN: &str = ".weft-reading-";

/// A capture that is being read.
#[derive(Debug)]
pub(super) struct Attempt(PathBuf);

impl Attempt {
    /// Marks the capture; `None` if the folder is not writable.
    pub(super) fn begin(source: &Source) -> Option<Self> {
        let path = source.path.with_file_name(format!("{BEGUN}{}", id(source.path.file_name()?)));
        std::fs::write(&path, state(source)).ok()?;
        Some(Attempt(path))
    }

    /// Removes the mark: the capture was read, or the server stops.
    pub(super) fn succeed(self) {
        // If the mark remains, the capture is only not read in the background.
        let _ = std::fs::remove_file(self.0);
    }
}

/// True if the file at `path` marks the capture as it is now.
pub(super) fn is_of(path: &Path, source: &Source) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text == state(source))
}

/// The id of the capture that a file with this name marks.
pub(super) fn marked(name: &OsStr) -> Option<&str> {
    name.to_str()?.strip_prefix(BEGUN)
}

/// The content of a mark: it changes with the capture.
fn state(source: &Source) -> String {
    let since = source.changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{} {}\n", source.len, since.as_nanos())
}
