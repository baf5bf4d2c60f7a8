//! Terminal screens: a capture's packets, fields and octets; a run with its verdicts.
//!
//! ```text
//! capture::indexer --batches--> capture (state) <--details-- capture::details
//! capture::filtered -numbers-->                 <--lines---- capture::study
//! run::source ------events----> run (state)
//!                               view (drawing) --> terminal (the loop)
//! ```
//!
//! A screen is plain state: background threads hand it what they read, keys become commands, and `view` draws what the
//! state says. Only `terminal` knows a real terminal; tests draw into ratatui's buffer.
//!
//! What is not here: verdicts and findings (those come from `weft-suites` and `weft-dissector`), and the capturing of a live capture: who captures
//! writes files, and says in a [`Recording`] what of them may be read.
//!
//! **Limits.** A capture must be in files, since it is read more than once. Its index takes about 25 octets a frame and holds
//! [`MAX_FRAMES`] frames; the screen says so when a capture has more. Octets and fields are not kept: the capture is
//! dissected again, up to the selected frame, when they are looked at.
#![forbid(unsafe_code)]

mod capture;
mod command;
mod complete;
mod entry;
mod list;
mod mouse;
mod run;
mod terminal;
#[cfg(test)]
mod testing;
mod theme;
mod view;
mod wrap;

use std::io;
use std::path::{Path, PathBuf};

use weft_dissector::source::OpenError;

pub use capture::MAX_FRAMES;
pub use capture::recording::{Live, Part, Recording};
pub use run::{LiveSink, RunSource, Starter, Wish, live};

/// Why a screen could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The capture cannot be read at all.
    #[error("{path}: {source}", path = path.display())]
    Capture {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: OpenError,
    },
    /// The capture is a pipe or standard input.
    #[error("{path} is not a file; weft reads a capture on the screen more than once, so save it first", path = .0.display())]
    NotAFile(PathBuf),
    /// The run cannot be read.
    #[error("{path}: {what}", path = path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The terminal refuses.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Shows the capture at `path` until the user quits.
///
/// # Errors
/// What [`Error`] lists. Damage inside of the capture is no error: the screen tells it.
pub fn capture(path: &Path) -> Result<(), Error> {
    let mut screen = capture::Screen::open(path)?;
    terminal::show(&mut screen)?;
    Ok(())
}

/// Shows a capture while it is being made, until the user quits; then [`Recording::is_left`] says so.
///
/// # Errors
/// What [`Error`] lists.
pub fn live_capture(recording: Recording) -> Result<(), Error> {
    let mut screen = capture::Screen::live(recording);
    terminal::show(&mut screen)?;
    Ok(())
}

/// Shows a run, live or finished, until the user quits.
///
/// # Errors
/// What [`Error`] lists.
pub fn run(source: RunSource) -> Result<(), Error> {
    let mut screen = run::Screen::open(source)?;
    terminal::show(&mut screen)?;
    Ok(())
}
