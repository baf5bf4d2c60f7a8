//! Warns if all users of this machine can read a file with secrets.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::exit::note;

/// The bit of a file's mode that lets all users read the file (chmod(1)).
const READ_BY_OTHERS: u32 = 0o004;

/// Warns if every user of this machine can read `file`. `secret` names the contents of the file for
/// the message.
///
/// # Errors
/// The mode of the file cannot be read.
pub(crate) fn warn_if_readable(file: &Path, secret: &str) -> io::Result<()> {
    if file.metadata()?.permissions().mode() & READ_BY_OTHERS != 0 {
        let file = file.display();
        note(&format!("{file}: every user of this machine can read {secret}; run chmod 600 {file}"));
    }
    Ok(())
}
