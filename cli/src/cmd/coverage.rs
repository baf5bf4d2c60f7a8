//! `weft coverage`: counts the requirements that are covered.

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

/// What can cover a row.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Cases and rules, on rows whose violation shows on the wire or in an answer
    Case,
    /// Rules of the monitor, on rows whose violation shows on the wire
    Rule,
    /// Tests of the endpoint, on rows whose violation shows at the verbs or on the wire
    Test,
}

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "A row is covered if a run proved it:\n  \
    case  the case passes against a correct target; it fails and names the row if the target has a deviation\n        \
    that violates the row\n  \
    rule  one stream triggers the rule, and a stream that is as similar as possible does not\n  \
    test  an assertion of the test fails if the rule is violated\n\
    `make coverage` runs the tests and `weft suite prove`, and renews the built-in table.\n\n\
    rows          rows whose violation shows in the counted way: on the wire or in an answer; for rules on\n              \
    the wire; for tests at the verbs or on the wire, and for SDP in answers and to the user, too\n\
    judgeable     some stream of bytes, or some answer, visibly violates it; only these count\n\
    permission    it permits or defines something, so nothing can violate it\n\
    outside       its violation depends on facts that neither a capture nor a tester on the wire has\n\
    unclassified  not classified yet; counted as judgeable\n\
    rule, case    rows that a rule, and rows that a case is proven to judge; some are in both\n\
    named         rows that a case names, but no deviation makes it fail for them: not covered\n\
    upper         judgeable rows of MPA, DDP and RDMAP whose violation only the target's user sees;\n              \
    in no other column\n\
    reported      those of them that a case with an agent is proven to judge")]
pub(crate) struct Arguments {
    /// Count rows that are covered in this way
    #[arg(long, value_enum, default_value = "case")]
    by: Kind,
    /// Print one line per section
    #[arg(long)]
    sections: bool,
    /// List the rows that nothing covers, and the omitted rows with the reason
    #[arg(long)]
    open: bool,
    /// Print one JSON object per catalogue or section
    #[arg(long)]
    json: bool,
    /// Read proofs from this folder instead of the built-in ones; repeatable
    ///
    /// The folder was written by tests, or it is the folder `prove` of `weft suite prove`.
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Write the proofs to this file, sorted
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

/// The proofs of these folders; without folders, the built-in ones.
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
        if of_cases { "   rule   case  named   open  covered           upper  reported" } else { "  covered" }
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
            write!(out, "  {:>6} {:>9}", count.upper, count.upper_covered)?;
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
