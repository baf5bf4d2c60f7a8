//! Terminal screens: a capture with its packets, fields and bytes; a run with its verdicts.
//!
//! ```text
//! capture::indexer --batches--> capture (state) <--details-- capture::details
//! capture::filtered -numbers-->                 <--lines---- capture::study
//! run::source ------events----> run (state)
//!                               view (drawing) --> terminal (the loop)
//! ```
//!
//! A screen is plain state. Background threads send it what they read, keys become commands, and
//! `view` draws the state. Only `terminal` uses a real terminal; tests draw into ratatui's buffer.
//!
//! Verdicts and findings come from `weft-suites` and `weft-dissector`. Live capturing is not part
//! of this crate: the capturing code writes files, and reports in a [`Recording`] what may be read.
//!
//! **Limits.** A capture must be in files, because it is read more than once. Its index takes about
//! 25 bytes per frame and has at most [`MAX_FRAMES`] frames; the screen reports if a capture has
//! more. Bytes and fields are not stored: to show them, weft dissects the capture again, up to the
//! selected frame.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod byte_columns;
mod capture;
mod command;
mod complete;
mod entry;
mod error;
mod list;
mod motion;
mod mouse;
mod run;
mod terminal;
#[cfg(test)]
mod testing;
mod theme;
mod view;
mod wrap;

use std::path::Path;

pub use capture::indexer::MAX_FRAMES;
pub use capture::recording::{Live, Part, Recording};
pub use error::Error;
pub use run::{LiveSink, RunSource, Starter, Wish, live};

/// Shows the capture at `path` until the user quits.
///
/// # Errors
/// What [`Error`] lists. Damage inside the capture is not an error: the screen reports it.
pub fn capture(path: &Path) -> Result<(), Error> {
    let mut screen = capture::Screen::open(path)?;
    terminal::show(&mut screen)?;
    Ok(())
}

/// Shows a live capture until the user quits. Then [`Recording::is_left`] returns `true`.
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
