//! From an error to a line on standard error and an exit code.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use weft_core::text::visible;
use weft_suites::store::StoreError;

/// Findings at or above the chosen level, or unexpected results.
pub(crate) const UNEXPECTED: u8 = 1;
/// The command line, or input that cannot be read at all.
pub(crate) const USAGE: u8 = 2;
/// The peer could not be reached, or would not have us.
pub(crate) const UNREACHABLE: u8 = 3;
/// A fault of weft itself or of its surroundings.
pub(crate) const HARNESS: u8 = 4;

/// A line on standard output. The command goes on if it cannot be written, because what a run is for is in its folder; its exit
/// status says so at the end ([`with_output`]).
macro_rules! say {
    ($($text:tt)*) => {{
        let mut out = weft_core::text::Visible(std::io::stdout().lock());
        let line = std::io::Write::write_fmt(&mut out, format_args!("{}\n", format_args!($($text)*)));
        $crate::exit::note_written(line);
    }};
}
pub(crate) use say;

/// Why the first line of the output that was lost could not be written.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Takes note of a line that could not be written. A reader that goes away has read what it wanted.
pub(crate) fn note_written(line: io::Result<()>) {
    if let Err(error) = line
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// The exit code of a command that came to `code`: lost output is trouble of this machine.
pub(crate) fn with_output(code: ExitCode) -> ExitCode {
    let Some(error) = LOST.get() else { return code };
    note(&unwritten(error));
    ExitCode::from(HARNESS)
}

/// Why the output cannot be written, for people.
fn unwritten(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the output cannot be written: the disk is full".to_owned(),
        _ => format!("the output cannot be written: {error}"),
    }
}

const GONE: &str = "the reader of the output went away; stopped there";

/// The output of a command whose exit code is a verdict. If its reader goes away (`| head`), the rest is dropped and the
/// command goes on, so that the verdict is the same.
pub(crate) struct Verdict<W> {
    out: W,
    /// The reader has gone away.
    pub(crate) is_unread: bool,
}

impl<W> Verdict<W> {
    pub(crate) fn new(out: W) -> Self {
        Verdict { out, is_unread: false }
    }

    /// `written`, unless nobody reads.
    fn unless_unread<T>(&mut self, written: io::Result<T>, otherwise: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_unread = true;
                Ok(otherwise)
            }
            written => written,
        }
    }
}

impl<W: Write> Write for Verdict<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.is_unread {
            return Ok(octets.len());
        }
        let written = self.out.write(octets);
        self.unless_unread(written, octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.unless_unread(flushed, ())
    }
}

/// What the user gave cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadInput(pub String);

/// What was asked for was done, and did not end well: the code says how.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Unsuccessful {
    pub code: u8,
    pub text: String,
}

/// The target cannot be had; `error` says why.
pub(crate) fn unreachable(error: &impl std::fmt::Display) -> anyhow::Error {
    Unsuccessful { code: UNREACHABLE, text: error.to_string() }.into()
}

/// Why `path` cannot be written, for people.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> String {
    use io::ErrorKind;
    // The folder of a bare name is this one.
    let has_folder = path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir());
    match error.kind() {
        ErrorKind::NotFound if has_folder => "cannot be written: its folder takes no files".to_owned(),
        ErrorKind::NotFound => "cannot be written: its folder does not exist".to_owned(),
        ErrorKind::PermissionDenied => "may not be written: permission denied".to_owned(),
        ErrorKind::AlreadyExists => "is no folder; name another".to_owned(),
        ErrorKind::NotADirectory => "is below something that is no folder; name another".to_owned(),
        ErrorKind::IsADirectory => "is a directory; name a file".to_owned(),
        ErrorKind::StorageFull => "cannot be written: the disk is full".to_owned(),
        _ => format!("cannot be written: {error}"),
    }
}

/// A line on standard error; whether anybody can read it is not our concern.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "weft: {}", visible(line));
}

/// One line on standard error, and the code that fits.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    if io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe) {
        note(GONE);
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref::<io::Error>() {
        // Files are named where they are opened; what is left is the output.
        Some(io) if io.kind() == io::ErrorKind::StorageFull => note(&unwritten(io)),
        _ => note(&format!("{error:#}")),
    }
    if let Some(Unsuccessful { code, .. }) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    let is_no_store = matches!(error.downcast_ref(), Some(StoreError::Open { .. } | StoreError::Address));
    ExitCode::from(if is_no_store || error.is::<BadInput>() { USAGE } else { HARNESS })
}
