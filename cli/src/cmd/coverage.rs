//! `weft coverage`: counts the requirements that cases, lint rules or tests cover.
//!
//! A requirement is covered if there is a proof. The help of [`Arguments`] defines the kinds of
//! proofs, and the columns of the output.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use weft_core::coverage::CoverageKind;
use weft_core::requirement::{Catalogue, Class};
use weft_suites::coverage::{Count, CountedCases, Proofs, count, rows, upper_rows};
use weft_suites::script::Suites;

use crate::exit::{BadInput, write_file};
use crate::one_of::one_of;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "A requirement is covered if there is a proof. There are three kinds of proofs:\n  \
    case  A test case passes against a correct target. Against a target that violates the\n        \
    requirement, the case fails and names the requirement.\n  \
    rule  A lint rule reports a stream of bytes that violates the requirement. It does not report\n        \
    an almost equal stream that meets the requirement.\n  \
    test  A unit test has an assertion that fails if the endpoint violates the requirement.\n\
    The built-in proofs come from `make coverage`, which runs the unit tests and `weft suite prove`.\n\n\
    The output has these columns, each with a number of requirements:\n  \
    rows          all requirements whose violation can be observed by a proof of the kind in --by.\n                \
    Rules observe packets. Cases observe packets and the target's reactions. Unit tests\n                \
    observe packets and the API of the endpoint. In SDP, they act as the peer and the\n                \
    user of the endpoint, and observe everything that these two observe.\n  \
    judgeable     requirements whose violation is visible in the bytes or in the target's reaction\n  \
    permission    requirements that permit or define something, so nothing can violate them\n  \
    outside       requirements whose violation depends on facts that are not in a capture, and that\n                \
    a tester does not know\n  \
    unclassified  requirements that are not classified yet; they also count as judgeable\n  \
    service       requirements that a case judges on any target with a common service, such as\n                \
    echo; each of these columns contains only requirements with a proof\n  \
    driver        requirements that a case judges only on a driven SDP socket (docs/sdp-driver.md)\n  \
    agent         requirements that a case judges only on a target with an agent, or that only a\n                \
    case of other suites judges\n  \
    rule only     requirements that only a rule judges, so the violation must occur by chance\n  \
    named         requirements that a case tests, but that have no proof\n  \
    open          requirements without a case and without a proof\n  \
    covered       requirements with a proof, also as a percentage of the judgeable requirements\n  \
    upper         requirements of MPA, DDP and RDMAP whose violation only the user of the target\n                \
    observes. Only this column and `reported` count them.\n  \
    reported      requirements in `upper` with a proof of the kind `case`; the case uses an agent\n\n\
    Examples:\n  \
    weft coverage                        count requirements that cases or lint rules cover\n  \
    weft coverage --by rule --sections   count requirements that lint rules cover, by section\n  \
    weft coverage --open                 also list the requirements without a proof")]
pub(crate) struct Arguments {
    /// Choose what covers a requirement
    #[arg(long, default_value = "case", value_parser = one_of([
        ("case", "Cases and lint rules that detect violations on the wire or in the target's reaction", CoverageKind::Case),
        ("rule", "Lint rules that detect violations on the wire", CoverageKind::Rule),
        ("test", "Unit tests of weft's endpoint: they check the wire and the API", CoverageKind::Test),
    ]))]
    by: CoverageKind,
    /// Print one line per section of a specification
    #[arg(long)]
    sections: bool,
    /// List the requirements that are not covered, each with the reason if it is known
    ///
    /// weft also lists the requirements that cannot be judged.
    #[arg(long)]
    open: bool,
    /// Print one JSON object per specification or section
    #[arg(long)]
    json: bool,
    /// Read proofs from this folder instead of the built-in proofs; repeatable
    ///
    /// Unit tests write proofs to the folder that WEFT_COVERAGE names, if it is set. `weft suite
    /// prove` writes proofs to the folder `prove`.
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Write the proofs to this CSV file, sorted
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Prints the table.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let proofs = proofs(&arguments.from)?;
    if let Some(file) = &arguments.write {
        write_file(file, proofs.to_csv())?;
    }
    let by = arguments.by;
    let suites = Suites::embedded().map_err(|error| BadInput(error.to_string()))?;
    let cases: CountedCases = suites.cases().collect();
    let counts = count(&proofs, by, &cases, arguments.sections);
    let mut out = io::stdout().lock();
    if arguments.json {
        for count in &counts {
            writeln!(out, "{}", serde_json::to_string(count)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    table(&mut out, &counts, by)?;
    if by == CoverageKind::Case {
        let tests = count(&proofs, CoverageKind::Test, &cases, false);
        if let Some(Count { covered, judgeable, .. }) = tests.iter().find(|it| it.catalogue == Catalogue::Verbs) {
            writeln!(
                out,
                "\nNo case judges the requirements of the verbs. Unit tests of weft's own endpoint prove {covered} of {judgeable}."
            )?;
        }
    }
    if arguments.open {
        for id in counts.iter().flat_map(|count| &count.named) {
            writeln!(out, "named  {:<18} {}", id, id.row().summary)?;
        }
        let open = counts.iter().flat_map(|count| &count.open).map(|id| ("open", id));
        let upper = counts.iter().flat_map(|count| &count.upper_open).map(|id| ("upper", id));
        for (word, id) in open.chain(upper) {
            let reason = id.row().classified.map_or("", |classified| classified.reason);
            let (dash, summary) = (if reason.is_empty() { "" } else { " - " }, id.row().summary);
            writeln!(out, "{word}  {id:<18} {summary}{dash}{reason}")?;
        }
        for (id, row) in rows(by).chain(upper_rows(by)) {
            if let Some(left_out) = row.classified.filter(|c| c.class != Class::Judgeable) {
                writeln!(out, "left out  {id:<14} {}", left_out.reason)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Loads the proofs of these folders. Without folders, loads the built-in proofs.
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

/// Prints the table, one line per specification or section.
fn table(out: &mut impl Write, counts: &[Count], by: CoverageKind) -> io::Result<()> {
    let of_cases = matches!(by, CoverageKind::Case);
    let width = counts.iter().map(|count| name(count).len()).max().unwrap_or(0).max("catalogue".len());
    write!(out, "{:<width$}  rows  judgeable  permission  outside  unclassified", "catalogue")?;
    writeln!(
        out,
        "{}",
        if of_cases {
            "  service  driver  agent  rule only  named  open  covered           upper  reported"
        } else {
            "  covered"
        }
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
            let Count { service, driver, agent, rule_only, .. } = count;
            write!(out, " {service:>8} {driver:>7} {agent:>6} {rule_only:>10} {named:>6} {open:>5}")?;
        }
        write!(out, " {covered:>8}  {:>5.1} %", count.percent())?;
        if of_cases && count.upper > 0 {
            write!(out, "  {:>6} {:>9}", count.upper, count.upper_covered)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The first column, such as `rdmap` or `rdmap 5.2.1`.
fn name(count: &Count) -> String {
    match count.section {
        Some(section) => format!("{} {section}", count.catalogue),
        None => count.catalogue.to_string(),
    }
}
