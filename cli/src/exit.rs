//! Turns an error into a line on standard error and an exit code.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use weft_core::text::visible;
use weft_suites::store::StoreError;

/// The exit code for findings that have at least the severity in `--level`, and for unexpected
/// results.
pub(crate) const UNEXPECTED: u8 = 1;
/// The exit code for a wrong command line, and for unreadable input.
pub(crate) const USAGE: u8 = 2;
/// The exit code for a peer that is unreachable or that rejected the connection.
pub(crate) const UNREACHABLE: u8 = 3;
/// The exit code for a problem of weft or of this machine.
pub(crate) const HARNESS: u8 = 4;

/// Prints a line on standard output. If the write fails, the command continues, because it also
/// writes its results to the run's folder. At the end, the exit code reports the failed write
/// ([`with_output`]).
macro_rules! print_line {
    ($($text:tt)*) => {{
        let mut out = weft_core::text::Visible(std::io::stdout().lock());
        let line = std::io::Write::write_fmt(&mut out, format_args!("{}\n", format_args!($($text)*)));
        $crate::exit::note_written(line);
    }};
}
pub(crate) use print_line;

/// The error of the first output line that could not be written.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// If the write of a line failed, records the error. A closed pipe is no error, because the reader
/// of the pipe (such as `head`) has read enough.
pub(crate) fn note_written(line: io::Result<()>) {
    if let Err(error) = line
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// Returns the exit code of the process: `code`, or [`HARNESS`] if an output line was lost.
pub(crate) fn with_output(code: ExitCode) -> ExitCode {
    let Some(error) = LOST.get() else { return code };
    note(&unwritten(error));
    ExitCode::from(HARNESS)
}

/// The message for a failed write of the output.
fn unwritten(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the output cannot be written: the disk is full".to_owned(),
        _ => format!("the output cannot be written: {error}"),
    }
}

/// The message for a command that stops because of a closed pipe.
const PIPE_CLOSED: &str = "stopped, because the reader closed the output";

/// The output of a command whose exit code is a verdict. If the reader closes the output
/// (`| head`), the command drops the remaining output and continues. Its exit code is therefore the
/// same as if the reader had read everything.
pub(crate) struct VerdictOutput<W> {
    out: W,
    /// Whether the reader has closed the output.
    pub(crate) is_unread: bool,
}

impl<W> VerdictOutput<W> {
    pub(crate) fn new(out: W) -> Self {
        VerdictOutput { out, is_unread: false }
    }

    /// Returns `written`, or `otherwise` if the reader has closed the output.
    fn ignore_broken_pipe<T>(&mut self, written: io::Result<T>, otherwise: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_unread = true;
                Ok(otherwise)
            }
            written => written,
        }
    }
}

impl<W: Write> Write for VerdictOutput<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.is_unread {
            return Ok(octets.len());
        }
        let written = self.out.write(octets);
        self.ignore_broken_pipe(written, octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.ignore_broken_pipe(flushed, ())
    }
}

/// weft cannot use the command line, or a file that the user named. The exit code is [`USAGE`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadInput(pub String);

/// Returns from the function with a [`BadInput`].
macro_rules! reject {
    ($($text:tt)*) => {
        return Err($crate::exit::BadInput(format_args!($($text)*).to_string()).into())
    };
}
pub(crate) use reject;

/// The command ran, but did not succeed. `code` is the exit code.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct CommandFailure {
    pub code: u8,
    pub text: String,
}

/// Makes the error for a target that is unreachable because of `error`.
pub(crate) fn unreachable(error: &impl std::fmt::Display) -> anyhow::Error {
    CommandFailure { code: UNREACHABLE, text: error.to_string() }.into()
}

/// The reason why `path` cannot be written, for a message.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> String {
    use io::ErrorKind;
    // A path without a folder is in the current folder, which exists.
    let has_folder = path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir());
    match error.kind() {
        ErrorKind::NotFound if has_folder => "cannot be written: its folder does not accept files".to_owned(),
        ErrorKind::NotFound => "cannot be written: its folder does not exist".to_owned(),
        ErrorKind::PermissionDenied => "cannot be written: permission denied".to_owned(),
        ErrorKind::AlreadyExists => "is not a folder; use another name".to_owned(),
        ErrorKind::NotADirectory => "has a parent that is not a folder; use another path".to_owned(),
        ErrorKind::IsADirectory => "is a folder; use the path of a file".to_owned(),
        ErrorKind::StorageFull => "cannot be written: the disk is full".to_owned(),
        _ => format!("cannot be written: {error}"),
    }
}

/// Writes a file that the user named.
pub(crate) fn write_file(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), BadInput> {
    std::fs::write(path, contents)
        .map_err(|error| BadInput(format!("{}: {}", path.display(), unwritable(path, &error))))
}

/// Prints a JSON object as one line on standard output. If the write fails, does the same as
/// [`print_line`].
pub(crate) fn print_json(object: &serde_json::Value) {
    print_line!("{object}");
}

/// Prints a line on standard error, if possible.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "weft: {}", visible(line));
}

/// Prints the error as one line on standard error, and returns the exit code for the error.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    if io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe) {
        note(PIPE_CLOSED);
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref::<io::Error>() {
        // If an I/O error concerns a file, the error has the file's path as context. An I/O error
        // without context means that weft could not write its output.
        Some(io) if io.kind() == io::ErrorKind::StorageFull => note(&unwritten(io)),
        _ => note(&format!("{error:#}")),
    }
    if let Some(CommandFailure { code, .. }) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    let is_no_store = matches!(error.downcast_ref(), Some(StoreError::Open { .. } | StoreError::Address));
    ExitCode::from(if is_no_store || error.is::<BadInput>() { USAGE } else { HARNESS })
}
