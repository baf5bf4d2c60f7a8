//! `weft tui -i`: a thread writes captured frames to files, and the screen reads the files.
//!
//! So a slow terminal causes no loss of frames, and the screen shows exactly the contents of the
//! files. Without -w, the files are temporary: weft deletes them when the user quits.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use weft_tui::{Live, Part, Recording};

use crate::exit::{BadInput, reject};
use crate::input::{Input, LiveArguments, Next, Ring, SaveDestination};

/// The ring of temporary files: 16 files of 64 MB.
const TEMPORARY: [&str; 2] = ["filesize:64000", "files:16"];

/// Captures frames and shows the screen until the user quits.
pub(super) fn run(arguments: &LiveArguments, write: Option<&Path>, ring: &[String]) -> anyhow::Result<ExitCode> {
    let Some(interface) = arguments.interface() else {
        reject!("missing input: name a capture file, a run, or an interface with -i");
    };
    let words = if write.is_some() { ring.to_vec() } else { TEMPORARY.map(str::to_owned).to_vec() };
    let ring = Ring::read(&words)?;
    let input = Input::live(
        arguments,
        interface,
        Some((write.map_or(SaveDestination::Temporary, SaveDestination::Path), ring)),
    )?;
    let what = match write {
        Some(path) => format!("{} > {}", arguments.title(), path.display()),
        None => arguments.title(),
    };
    let recording = Recording::live(&what);
    let capturing = thread::Builder::new().name("capture".to_owned()).spawn({
        let (recording, what) = (recording.clone(), what.clone());
        move || capture(input, &recording, &what)
    })?;
    let shown = weft_tui::live_capture(recording.clone());
    // Stop the capturing thread, even if the screen never started.
    recording.leave();
    let failed = "weft failed while it captured frames; please report this defect";
    let closed = capturing.join().unwrap_or_else(|_| Err(anyhow::anyhow!(failed)));
    shown.map_err(|error| BadInput(error.to_string()))?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

/// Captures frames until the capture ends or the user quits.
fn capture(mut input: Input, recording: &Recording, what: &str) -> anyhow::Result<()> {
    while !recording.is_left() {
        match input.next() {
            Next::Frame(_) => {}
            Next::Idle => publish(&mut input, recording, what),
            Next::End => break,
        }
    }
    input.flush();
    publish(&mut input, recording, what);
    recording.end();
    // The screen reads temporary files, so they must remain until the user quits.
    recording.wait_until_left();
    input.close()
}

/// Updates the state for the screen: the readable files, and the numbers of dropped frames.
fn publish(input: &mut Input, recording: &Recording, what: &str) {
    let Some(progress) = input.live_progress() else { return };
    let Some(written) = progress.written else { return };
    let parts = written.files.into_iter().map(|(path, before): (PathBuf, u64)| Part { path, before });
    let live = Live {
        what: what.to_owned(),
        frames: progress.frames,
        dropped_by_kernel: progress.drops.kernel,
        dropped_by_interface: progress.drops.interface,
        files: written.count,
        ended: progress.ended,
    };
    recording.update(parts, written.octets, live);
}
