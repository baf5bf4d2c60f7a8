//! `weft coverage`: which requirements are covered by what.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use weft_core::coverage::By;
use weft_suites::coverage::{Proofs, count, rows};

use crate::exit::{BadInput, unwritable};

/// What covers.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// A rule of the monitor, on rows that show on the wire
    Rule,
    /// A test of the endpoint, on rows that show at the verbs or on the wire; of SDP and its port mapper on those that show on the
    /// wire, in an answer, or to the user
    Test,
}

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "A row counts as covered when a test proved it: a stream that makes its rule fire and one, as close as \
    possible, that does not; or an assertion of its own. `make coverage` runs the tests and renews the table that is built in.\n\n\
    rows          rows whose breach shows in the way that is counted: on the wire; for tests at the verbs, too, and with SDP in \
    answers and to the user\n\
    judgeable     some stream of octets, or some answer, breaks it for everyone to see; only these count\n\
    permission    it permits or defines something: nothing can break it\n\
    outside       whether it is broken depends on what no capture holds\n\
    unclassified  nobody has said yet; counted as judgeable"
)]
pub(crate) struct Arguments {
    /// What covers a row
    #[arg(long, value_enum, default_value = "rule")]
    by: Kind,
    /// List the rows that nothing covers, and those that are left out with the reason
    #[arg(long)]
    open: bool,
    /// One JSON object a catalogue
    #[arg(long)]
    json: bool,
    /// Proofs from a folder that tests wrote, instead of those built in
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Write the proofs to a file, sorted
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Prints the table.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let proofs = match &arguments.from {
        Some(folder) => Proofs::from_folder(folder),
        None => Proofs::built_in(),
    }
    .map_err(|error| BadInput(error.to_string()))?;
    if let Some(file) = &arguments.write {
        std::fs::write(file, proofs.to_csv())
            .map_err(|error| BadInput(format!("{}: {}", file.display(), unwritable(&error))))?;
    }
    let by = match arguments.by {
        Kind::Rule => By::Rule,
        Kind::Test => By::Test,
    };
    let counts = count(&proofs, by);
    let mut out = io::stdout().lock();
    if arguments.json {
        for count in &counts {
            writeln!(out, "{}", serde_json::to_string(count)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "catalogue  rows  judgeable  permission  outside  unclassified  covered")?;
    for count in &counts {
        writeln!(
            out,
            "{:<9} {:>5} {:>10} {:>11} {:>8} {:>13} {:>8}  {:.1} %",
            count.catalogue,
            count.rows,
            count.judgeable,
            count.permission,
            count.outside,
            count.unclassified,
            count.covered,
            count.percent()
        )?;
    }
    if arguments.open {
        for id in counts.iter().flat_map(|count| &count.open) {
            writeln!(out, "open  {:<18} {}", id, id.row().summary)?;
        }
        for (id, row) in rows(by) {
            if let Some(left_out) = row.classified.filter(|c| c.class != weft_core::requirement::Class::Judgeable) {
                writeln!(out, "left out  {id:<14} {}", left_out.reason)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
