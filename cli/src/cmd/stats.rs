//! `weft stats`: each iWARP connection of a capture in numbers.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use weft_dissector::stats::Stats;

use crate::input::CaptureFile;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: CaptureFile,
    /// One JSON object a connection, times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// Reads the capture and prints the numbers.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let input = arguments.file.open()?;
    let name = input.name().to_owned();
    let mut stats = Stats::default();
    input.dissect(&mut stats)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for connection in stats.connections() {
        if arguments.json {
            serde_json::to_writer(&mut out, connection).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{connection}")?;
        }
    }
    if !arguments.json {
        let count = stats.connections().count();
        write!(out, "{name}: {count} connections with iWARP, {} other TCP connections", stats.others())?;
        match stats.port_mapper() {
            0 => writeln!(out)?,
            datagrams => writeln!(out, ", {datagrams} port mapper datagrams")?,
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
