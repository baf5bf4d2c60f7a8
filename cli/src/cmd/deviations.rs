//! `weft deviations`: what the hostile twin can be told to do wrong.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use weft_peer::hostile;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

/// Prints one a line: name, requirement ids, what it does. No header in a pipe.
pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        writeln!(out, "{:<32} {:<16} what it does", "name", "breaks")?;
    }
    for deviation in hostile::all() {
        let ids: Vec<&str> = deviation.breaks.iter().map(|id| id.as_str()).collect();
        writeln!(out, "{:<32} {:<16} {}", deviation.name, ids.join(","), deviation.sentence)?;
    }
    Ok(ExitCode::SUCCESS)
}
