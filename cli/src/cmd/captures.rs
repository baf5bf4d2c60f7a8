//! Runs a command for each capture on its command line: files, the captures in folders, several
//! files as one capture, or an interface.
//!
//! The commands are those whose exit code is a verdict. The highest code of all captures counts.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::source::{CAPTURE_EXTENSIONS, is_capture_name};

use crate::exit::{self, BadInput, USAGE, VerdictOutput};
use crate::input::{Input, LiveArguments};

/// Standard output.
pub(super) type Out = BufWriter<VerdictOutput<io::StdoutLock<'static>>>;

/// The options that name the captures.
pub(super) struct NamedCaptures<'a> {
    pub(super) files: &'a [PathBuf],
    /// The file of `-r`.
    pub(super) read: Option<&'a PathBuf>,
    /// Whether several files are one capture.
    pub(super) merge: bool,
    pub(super) live: &'a LiveArguments,
    /// Whether the output is JSON. JSON has no empty line between two captures.
    pub(super) json: bool,
}

/// Calls `one` for each capture, and returns the highest exit code. The second argument of `one` is
/// whether there are several captures. If there are, the output must name the capture.
///
/// If one of several captures is unreadable, this function reports it and continues.
pub(super) fn for_each(
    named: &NamedCaptures<'_>,
    mut one: impl FnMut(Input, bool, &mut Out) -> anyhow::Result<u8>,
) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(VerdictOutput::new(io::stdout().lock()));
    let code = if let Some(interface) = named.live.interface() {
        one(Input::live(named.live, interface, None)?, false, &mut out)?
    } else {
        named.live.reject_without_interface()?;
        let files = captures_of(named.files, named.read)?;
        if named.merge && files.len() > 1 {
            if let Some(folder) = files.iter().find(|file| file.is_dir()) {
                return Err(without_captures(folder).into());
            }
            one(Input::open_several(&files)?, false, &mut out)?
        } else {
            for_each_file(&files, named.json, one, &mut out)?
        }
    };
    out.flush()?;
    Ok(ExitCode::from(code))
}

fn for_each_file(
    files: &[PathBuf],
    json: bool,
    mut one: impl FnMut(Input, bool, &mut Out) -> anyhow::Result<u8>,
    out: &mut Out,
) -> anyhow::Result<u8> {
    let several = files.len() > 1;
    let mut worst = 0;
    for (index, file) in files.iter().enumerate() {
        if index > 0 && !json {
            writeln!(out)?;
        }
        let code = match open(file).and_then(|input| one(input, several, out)) {
            // After an unreadable capture, continue with the next one.
            Err(error) if several && error.is::<BadInput>() => {
                out.flush()?;
                exit::report(&error);
                USAGE
            }
            outcome => outcome?,
        };
        worst = worst.max(code);
    }
    Ok(worst)
}

/// Returns the captures that the command line names, with the captures in each named folder. If a
/// folder has no captures, the folder itself is in the list, and [`open`] rejects it.
fn captures_of(named: &[PathBuf], read: Option<&PathBuf>) -> Result<Vec<PathBuf>, BadInput> {
    let mut files = Vec::new();
    for path in named.iter().chain(read) {
        let found = if path.is_dir() { captures_in(path)? } else { Vec::new() };
        if found.is_empty() {
            files.push(path.clone());
        }
        files.extend(found);
    }
    Ok(files)
}

/// Returns the captures in a folder, sorted by name.
fn captures_in(folder: &Path) -> Result<Vec<PathBuf>, BadInput> {
    let failed = |error: io::Error| BadInput(format!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() && path.file_name().is_some_and(is_capture_name) {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Opens a capture. Fails if `path` is a folder, because [`captures_of`] has found no captures in
/// it.
fn open(path: &Path) -> anyhow::Result<Input> {
    if path.is_dir() { Err(without_captures(path).into()) } else { Input::open(path) }
}

/// Makes the error for a folder without captures.
fn without_captures(folder: &Path) -> BadInput {
    let names = CAPTURE_EXTENSIONS.join(", .");
    BadInput(format!("{}: the folder contains no capture (no file with one of the endings .{names})", folder.display()))
}
