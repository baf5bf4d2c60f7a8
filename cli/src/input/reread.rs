//! Reads a capture more than once. Standard input and pipes can be read only once, so weft first
//! copies them to an unnamed temporary file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use weft_dissector::source::{Capture, OpenError};

use crate::exit::{BadInput, CommandFailure, HARNESS, reject};

use super::{Input, name_of, unreadable};

/// A capture that can be read several times.
pub(crate) struct RereadableCapture {
    name: String,
    file: Arc<File>,
    len: u64,
}

impl RereadableCapture {
    /// Opens the capture at `path`, and copies its bytes if they can be read only once.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = name_of(path);
        let failed = |error: io::Error| unreadable(&name, &error.into());
        let file = if path == Path::new("-") {
            copy(&mut io::stdin().lock(), &name)?
        } else {
            let mut file = File::open(path).map_err(failed)?;
            let kind = file.metadata().map_err(failed)?.file_type();
            if kind.is_dir() {
                return Err(unreadable(&name, &OpenError::Directory).into());
            }
            if kind.is_file() { file } else { copy(&mut file, &name)? }
        };
        let len = file.metadata().map_err(failed)?.len();
        Ok(RereadableCapture { name, file: Arc::new(file), len })
    }

    /// Returns the capture as input, from the first frame.
    pub(crate) fn input(&self) -> anyhow::Result<Input> {
        let capture = Capture::from_reader(Box::new(self.octets())).map_err(|error| unreadable(&self.name, &error))?;
        Ok(Input::read(self.name.clone(), capture, self.len))
    }

    /// Returns the bytes of the capture, from the first byte.
    pub(crate) fn octets(&self) -> Octets {
        Octets { file: Arc::clone(&self.file), at: 0 }
    }
}

/// Copies the input to an unnamed temporary file.
fn copy(from: &mut dyn Read, name: &str) -> anyhow::Result<File> {
    let failed = |error: io::Error| {
        let folder = std::env::temp_dir();
        let text = format!("{name}: cannot be copied to {}: {error}; set TMPDIR to another folder", folder.display());
        CommandFailure { code: HARNESS, text }
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    io::copy(from, &mut file).map_err(failed)?;
    Ok(file)
}

/// A reader with its own position in a file. Several readers can share one file.
pub(crate) struct Octets {
    file: Arc<File>,
    at: u64,
}

impl Read for Octets {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(out, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Fails if the output file is the input file, or a hard link to the input file.
pub(crate) fn refuse_same(read: &Path, written: &Path) -> Result<(), BadInput> {
    let read = if read == Path::new("-") { Path::new("/dev/stdin") } else { read };
    let (Ok(one), Ok(other)) = (fs::metadata(read), fs::metadata(written)) else { return Ok(()) };
    if one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()) {
        reject!("{}: this file is the capture that weft reads; use another output file", written.display());
    }
    Ok(())
}
