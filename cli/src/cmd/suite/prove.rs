//! `weft suite prove`: the kill matrix.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::output::text::counted;
use weft_suites::Filter;
use weft_suites::coverage::Proofs;
use weft_suites::model::{CaseResult, Role, Tier};
use weft_suites::prove::{Cell, prove};
use weft_suites::script::Suites;

use crate::exit::{BadInput, print_line, unwritable};
use crate::results::make_folder;
use crate::runtime;
use crate::select;
use crate::suites::load;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft suite prove                                          every case; takes minutes\n  \
    weft suite prove --suites my-suites mpa/7.1.1-too-long    a case of yours\n\n\
    The exit code is 1 if a case fails against the correct endpoint, a deviation is not caught, or\n\
    no deviation makes a case fail. The folder prove in the folder of --out gets proofs.csv.")]
pub(crate) struct Arguments {
    /// Run only cases that match: a case, requirement, section, tag, or id prefix
    ///
    /// Each selected case runs against weft's own responder and initiator, and against each
    /// deviation that violates one of its requirements. A prefix ends before a `/`. A section is
    /// mpa/7.1 or MPA-7.1. case[parameter=value] selects one variant.
    #[arg(value_name = "SELECT")]
    select: Vec<String>,
    /// Use the suites of this folder instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
    /// Write the results to the folder prove in this folder
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
    /// Run few, more or all variants of each case
    ///
    /// smoke runs a few variants, default each pair of parameter values, full every combination.
    #[arg(long, value_name = "TIER", default_value_t, value_parser = select::tier())]
    tier: Tier,
    /// Run this many cases at a time; the default is 1
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    select::has_no_target(&arguments.select)?;
    let suites = load(arguments.suites.as_deref())?;
    make_folder(&arguments.out)?;
    let filter = Filter::of(arguments.select.iter().cloned()).tier(arguments.tier);
    runtime::block_on(judge(&suites, &filter, arguments.jobs, &arguments.out))
}

/// Prints the matrix; 1 if a case fails against the correct twin, a deviation is uncaught, or a
/// case is unproven.
pub(crate) async fn judge(suites: &Suites, filter: &Filter, jobs: usize, out: &Path) -> anyhow::Result<ExitCode> {
    let out = out.join("prove");
    let matrix = prove(suites, filter, jobs, &out).await?;
    if matrix.cases.is_empty() {
        return Err(BadInput("no case matches".to_owned()).into());
    }
    let proofs = out.join("proofs.csv");
    std::fs::write(&proofs, Proofs::from_iter(matrix.proven.iter().cloned()).to_csv())
        .map_err(|error| BadInput(format!("{}: {}", proofs.display(), unwritable(&proofs, &error))))?;
    for row in matrix.rows.iter().filter(|row| !row.cells.is_empty()) {
        let breaks: Vec<&str> = row.deviation.breaks.iter().map(|requirement| requirement.as_str()).collect();
        print_line!("{}  {}", row.deviation.name, breaks.join(" "));
        for (case, cell) in &row.cells {
            let word = match cell {
                Cell::Caught => "caught",
                Cell::OnTheWay => "also observed",
                Cell::Missed => "-",
            };
            print_line!("    {word:<13} {case}");
        }
    }
    let without_case: Vec<&str> = matrix.without_case().map(|row| row.deviation.name).collect();
    // With few selected cases, nearly all deviations concern other rules.
    if without_case.len() < matrix.rows.len() / 2 {
        print_line!("\ndeviations that concern no case:\n    {}", without_case.join("\n    "));
        print_line!("\ndeviations that the builtin targets cannot show:");
        for (deviation, why) in &matrix.beyond {
            print_line!("    {}: {why}", deviation.name);
        }
    }
    for (role, result) in &matrix.broken {
        let CaseResult { key, verdict, explanation, .. } = result;
        print_line!("\nnot passed by the correct {role}: {key}: {verdict}: {explanation}");
    }
    let uncaught: Vec<String> = matrix.uncaught().map(|row| row.deviation.name.to_owned()).collect();
    let unproven: Vec<String> = matrix.unproven().map(ToString::to_string).collect();
    for (what, names) in
        [("uncaught deviations", &uncaught), ("unproven cases (no deviation makes them fail)", &unproven)]
    {
        if !names.is_empty() {
            print_line!("\n{what}:\n    {}", names.join("\n    "));
        }
    }
    let of_role = |role| matrix.cases.iter().filter(|case| case.role == role).count();
    print_line!(
        "\n{} ({} for responders, {} for initiators), {} not applicable to weft's own endpoint\n{}: {} about other \
         rules, {} uncaught; unproven cases: {}",
        counted(matrix.cases.len() as u64, "case"),
        of_role(Role::Responder),
        of_role(Role::Initiator),
        matrix.skipped.len(),
        counted(matrix.rows.len() as u64, "deviation"),
        without_case.len(),
        uncaught.len(),
        unproven.len()
    );
    print_line!("{} for `weft coverage --from {}`", counted(matrix.proven.len() as u64, "proof"), out.display());
    let complete = matrix.broken.is_empty() && uncaught.is_empty() && unproven.is_empty();
    Ok(ExitCode::from(u8::from(!complete)))
}
