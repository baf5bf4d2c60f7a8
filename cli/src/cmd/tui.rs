//! `weft tui`: a capture, or a finished run, in the terminal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use weft_tui::RunSource;

use crate::exit::BadInput;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  weft tui capture.pcap     packets, fields and octets of a capture\n  \
    weft tui weft-report      the run whose results are in that folder\n\nInside, ? tells the keys; q leaves.")]
pub(crate) struct Arguments {
    /// A capture file, the folder of a run, or its report.json
    #[arg(value_name = "FILE_OR_DIR")]
    path: PathBuf,
}

/// Shows it until the user leaves.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !std::io::stdout().is_terminal() {
        return Err(BadInput("standard output is no terminal; `weft dissect` writes into pipes".to_owned()).into());
    }
    let path = &arguments.path;
    let is_run = path.is_dir() || path.extension().is_some_and(|extension| extension == "json");
    let shown = if is_run { weft_tui::run(RunSource::Stored(path.clone())) } else { weft_tui::capture(path) };
    shown.map_err(|error| BadInput(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
