//! `weft tui`: shows a capture, an interface, or a finished test run in the terminal.

mod live;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use weft_tui::RunSource;

use crate::exit::{BadInput, reject};
use crate::input::{Input, LiveArguments};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "On the screen, press ? for the list of keys and q to quit.\n\n\
    Examples:\n  \
    weft tui capture.pcap                  show packets, fields and bytes of a capture\n  \
    weft tui -i eth0 -f 'tcp port 7174'    show packets of an interface live\n  \
    weft tui weft-report                   show the results of the test run in this folder")]
pub(crate) struct Arguments {
    /// Show this capture, this folder of a test run, or this report.json
    #[arg(value_name = "FILE_OR_DIR", required_unless_present = "interface", conflicts_with = "interface")]
    path: Option<PathBuf>,
    /// Shows this capture, as in tshark.
    #[arg(short = 'r', long = "read-file", value_name = "FILE", conflicts_with = "path", id = "read", hide = true)]
    read: Option<PathBuf>,
    #[command(flatten)]
    live: LiveArguments,
    /// With -i: save the captured frames as pcapng
    ///
    /// Without -w, weft stores the newest frames in temporary files of at most 1 GB in total.
    #[arg(short = 'w', long = "write", value_name = "OUT", requires = "interface", help_heading = "Live capture")]
    write: Option<PathBuf>,
    /// With -w: start a new file after filesize:KB, duration:SECONDS or packets:N
    ///
    /// Repeat the option for several conditions. files:N keeps only the N newest files.
    #[arg(short = 'b', long = "ring-buffer", value_name = "WHEN", requires = "write", help_heading = "Live capture")]
    ring: Vec<String>,
}

/// Shows the screen until the user quits.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !std::io::stdout().is_terminal() {
        reject!("standard output is not a terminal; use `weft dissect` to write to a pipe");
    }
    let Some(path) = arguments.path.as_ref().or(arguments.read.as_ref()) else {
        return live::run(&arguments.live, arguments.write.as_deref(), &arguments.ring);
    };
    arguments.live.reject_without_interface()?;
    let is_run = path.is_dir() || path.extension().is_some_and(|extension| extension == "json");
    let shown = if is_run { weft_tui::run(RunSource::Stored(path.clone())) } else { weft_tui::capture(path) };
    if matches!(shown, Err(weft_tui::Error::Capture { .. })) {
        // Open the capture once, to fail with the same error as other commands.
        Input::open(path)?;
    }
    shown.map_err(|error| BadInput(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
