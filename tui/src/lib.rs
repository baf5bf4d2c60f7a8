//! Terminal screens. One screen shows a capture with its packets, fields and bytes. The other
//! screen shows a run with its verdicts.
//!
//! ```text
//! capture::indexer --batches--> capture (state) <--details-- capture::details
//! capture::filtered -numbers-->                 <--lines---- capture::list_pass
//! run::source ------events----> run (state)
//!                               view (drawing) --> terminal (the loop)
//! ```
//!
//! A screen is plain state. Background threads send results to the screen, keys become commands,
//! and `view` draws the state. Only `terminal` uses a real terminal. Tests draw into ratatui's
//! buffer.
//!
//! Verdicts and findings come from `weft-suites` and `weft-dissector`. Live capturing is not part
//! of this crate: the capturing code writes files, and reports in a [`Recording`] which bytes the
//! screen is allowed to read.
//!
//! **Limits.** A capture must be in files, because the screen reads it more than once. The index of
//! a capture takes about 25 bytes per frame and has at most [`MAX_FRAMES`] frames. The screen
//! reports if a capture has more frames. The screen does not keep the bytes and fields of all
//! frames. To show a frame, it dissects the capture again, up to that frame.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod address;
mod byte_columns;
mod capture;
mod command;
mod complete;
mod error;
mod input_line;
mod list;
mod motion;
mod mouse;
mod outline;
mod run;
mod terminal;
#[cfg(test)]
mod testing;
mod theme;
mod time;
mod view;
mod wrap;

use std::path::Path;

pub use capture::indexer::MAX_FRAMES;
pub use capture::recording::{Live, Part, Recording};
pub use error::Error;
pub use run::{LiveSink, RerunStarter, RunSource, RunnerRequest, live};

/// Shows the capture at `path` until the user quits.
///
/// # Errors
/// Returns an error if the file is not a capture, if it cannot be read, or if the terminal cannot
/// be used. Damage inside the capture is not an error: the screen reports the damage.
pub fn capture(path: &Path) -> Result<(), Error> {
    let mut screen = capture::Screen::open(path)?;
    terminal::show(&mut screen)?;
    Ok(())
}

/// Shows a live capture until the user quits. After that, [`Recording::is_left`] returns `true`.
///
/// # Errors
/// Returns an error if the terminal cannot be used.
pub fn live_capture(recording: Recording) -> Result<(), Error> {
    let mut screen = capture::Screen::live(recording);
    terminal::show(&mut screen)?;
    Ok(())
}

/// Shows a run, live or finished, until the user quits.
///
/// # Errors
/// Returns an error if the report of a run cannot be read, or if the terminal cannot be used.
pub fn run(source: RunSource) -> Result<(), Error> {
    let mut screen = run::Screen::open(source)?;
    terminal::show(&mut screen)?;
    Ok(())
}
