//! Captures of the folder that this server did not read to their end, remembered beyond its own end.
//!
//! Pages read captures by themselves. One that breaks the reader off, or has the system kill the server, would do so again at each
//! restart. While a capture is read, a hidden file beside it says so; if reading succeeds, that file goes. If it is left,
//! pages show the capture and read it only for a person who opens it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Source;
use super::shelf;

/// How the names of these files begin; the id of the capture follows.
pub(super) const BEGUN: &str = ".weft-reading-";

/// A capture that is being read.
#[derive(Debug)]
pub(super) struct Attempt(PathBuf);

impl Attempt {
    /// Marks the capture. In a folder that cannot be written nothing is remembered.
    pub(super) fn begin(source: &Source) -> Option<Self> {
        let path = source.path.with_file_name(format!("{BEGUN}{}", shelf::id(source.path.file_name()?)));
        std::fs::write(&path, state(source)).ok()?;
        Some(Attempt(path))
    }

    /// The capture was read, or this server stops for another reason.
    pub(super) fn succeed(self) {
        // If it stays, pages read the capture less eagerly than they could.
        let _ = std::fs::remove_file(self.0);
    }
}

/// True if the file at `path` marks the capture as it is now.
pub(super) fn is_of(path: &Path, source: &Source) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text == state(source))
}

/// The id of the capture that a file of this name marks.
pub(super) fn marked(name: &OsStr) -> Option<&str> {
    name.to_str()?.strip_prefix(BEGUN)
}

/// What changes with the capture.
fn state(source: &Source) -> String {
    let since = source.changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{} {}\n", source.len, since.as_nanos())
}
