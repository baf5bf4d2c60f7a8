//! `weft coverage`: which requirements are covered by what.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use weft_core::coverage::By;
use weft_core::requirement::Class;
use weft_suites::coverage::{Count, Proofs, count, rows, upper_rows};
use weft_suites::script::Suites;

use crate::exit::{BadInput, unwritable};

/// What covers.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// A case of the suites, or a rule of the monitor, on rows that show on the wire or in an answer
    Case,
    /// A rule of the monitor, on rows that show on the wire
    Rule,
    /// A test of the endpoint, on rows that show at the verbs or on the wire; of SDP and its port mapper on those that show on the
    /// wire, in an answer, or to the user
    Test,
}

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "A row counts as covered when a run proved it: a case that a correct target passes and that fails, naming the row, when \
    the target commits a deviation which breaks it; a stream that makes a rule fire and one, as close as possible, that does not; an \
    assertion of a test. `make coverage` runs the tests and `weft test --prove` and renews the table that is built in.\n\n\
    rows          rows whose breach shows in the way that is counted: on the wire or in an answer; for rules on the wire; for tests at the \
    verbs or on the wire, and with SDP in answers and to the user, too\n\
    judgeable     some stream of octets, or some answer, breaks it for everyone to see; only these count\n\
    permission    it permits or defines something: nothing can break it\n\
    outside       whether it is broken depends on what neither a capture nor a tester at the wire has\n\
    unclassified  nobody has said yet; counted as judgeable\n\
    rule, case    rows that a rule, and rows that a case is proven to judge; some are in both\n\
    named         rows that a case names, without a deviation that makes it fail for them: not covered\n\
    upper, told   judgeable rows of MPA, DDP and RDMAP whose breach the target's user alone sees, and those of them that a case with an agent is proven to \
    judge; in no other column"
)]
pub(crate) struct Arguments {
    /// What covers a row
    #[arg(long, value_enum, default_value = "case")]
    by: Kind,
    /// A line for each section
    #[arg(long)]
    sections: bool,
    /// List the rows that nothing covers, and those that are left out with the reason
    #[arg(long)]
    open: bool,
    /// One JSON object a catalogue, or a section
    #[arg(long)]
    json: bool,
    /// Proofs from a folder that tests wrote, or the folder `prove` of `weft test --prove`, instead of those built in; may be given several
    /// times
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Write the proofs to a file, sorted
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Prints the table.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let proofs = proofs(&arguments.from)?;
    if let Some(file) = &arguments.write {
        std::fs::write(file, proofs.to_csv())
            .map_err(|error| BadInput(format!("{}: {}", file.display(), unwritable(file, &error))))?;
    }
    let by = match arguments.by {
        Kind::Case => By::Case,
        Kind::Rule => By::Rule,
        Kind::Test => By::Test,
    };
    let suites = Suites::embedded().map_err(|error| BadInput(error.to_string()))?;
    let named: BTreeSet<_> = suites.cases().flat_map(|case| case.requirements.iter().copied()).collect();
    let counts = count(&proofs, by, &named, arguments.sections);
    let mut out = io::stdout().lock();
    if arguments.json {
        for count in &counts {
            writeln!(out, "{}", serde_json::to_string(count)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    table(&mut out, &counts, by)?;
    if arguments.open {
        for id in counts.iter().flat_map(|count| &count.named) {
            writeln!(out, "named  {:<18} {}", id, id.row().summary)?;
        }
        for id in counts.iter().flat_map(|count| &count.open) {
            let reason = id.row().classified.map_or("", |classified| classified.reason);
            let (dash, summary) = (if reason.is_empty() { "" } else { " - " }, id.row().summary);
            writeln!(out, "open  {id:<18} {summary}{dash}{reason}")?;
        }
        for id in counts.iter().flat_map(|count| &count.upper_open) {
            let reason = id.row().classified.map_or("", |classified| classified.reason);
            let (dash, summary) = (if reason.is_empty() { "" } else { " - " }, id.row().summary);
            writeln!(out, "upper  {id:<18} {summary}{dash}{reason}")?;
        }
        for (id, row) in rows(by).chain(upper_rows(by)) {
            if let Some(left_out) = row.classified.filter(|c| c.class != Class::Judgeable) {
                writeln!(out, "left out  {id:<14} {}", left_out.reason)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The proofs of these folders; without one, those built in.
fn proofs(folders: &[PathBuf]) -> anyhow::Result<Proofs> {
    let bad = |error: weft_suites::coverage::CoverageError| BadInput(error.to_string());
    if folders.is_empty() {
        return Ok(Proofs::built_in().map_err(bad)?);
    }
    let mut proofs = Proofs::default();
    for folder in folders {
        proofs.add_folder(folder).map_err(bad)?;
    }
    Ok(proofs)
}

fn table(out: &mut impl Write, counts: &[Count], by: By) -> io::Result<()> {
    let of_cases = matches!(by, By::Case);
    let width = counts.iter().map(|count| name(count).len()).max().unwrap_or(0).max("catalogue".len());
    write!(out, "{:<width$}  rows  judgeable  permission  outside  unclassified", "catalogue")?;
    writeln!(
        out,
        "{}",
        if of_cases { "   rule   case  named   open  covered           upper   told" } else { "  covered" }
    )?;
    for count in counts {
        let Count { rows, judgeable, permission, outside, unclassified, covered, .. } = count;
        write!(
            out,
            "{:<width$} {rows:>5} {judgeable:>10} {permission:>11} {outside:>8} {unclassified:>13}",
            name(count)
        )?;
        if of_cases {
            let (named, open) = (count.named.len(), count.open.len());
            write!(out, " {:>6} {:>6} {named:>6} {open:>6}", count.rule, count.case)?;
        }
        write!(out, " {covered:>8}  {:>5.1} %", count.percent())?;
        if of_cases && count.upper > 0 {
            write!(out, "  {:>6} {:>6}", count.upper, count.upper_covered)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// `rdmap`, `rdmap 5.2.1`.
fn name(count: &Count) -> String {
    match count.section {
        Some(section) => format!("{} {section}", count.catalogue),
        None => count.catalogue.to_string(),
    }
}
