//! `weft suite prove`: checks that the cases catch violations.
//!
//! A deviation makes weft's own endpoint violate a requirement. Each case must pass against the
//! correct endpoint, and must fail against deviations that violate its requirements. The result is
//! a matrix of deviations and cases, and a list of proofs for `weft coverage`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::output::text::counted;
use weft_suites::Filter;
use weft_suites::coverage::Proofs;
use weft_suites::model::{CaseResult, Role, Tier};
use weft_suites::prove::{ProofOutcome, prove};
use weft_suites::script::Suites;

use crate::exit::{print_line, reject, write_file};
use crate::results::make_folder;
use crate::runtime;
use crate::select;
use crate::suites::load;

/// Name of the file for the requirements that the cases report, but that the deviation does not list.
const OTHERS: &str = "other-requirements.txt";

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "weft writes the proofs to prove/proofs.csv in the folder of --out. Each proof names a case, a\n\
    deviation that makes the case fail, and the violated requirement. weft writes the other\n\
    requirements that the cases report to prove/other-requirements.txt. A deviation can violate\n\
    these too. If it does not, a case reports too much.\n\n\
    Exit codes:\n  \
    0  all cases are proven\n  \
    1  a case fails against the correct endpoint, a case passes with all of its deviations,\n     \
    or a deviation makes no case fail\n\n\
    Examples:\n  \
    weft suite prove                                          check all cases (takes some minutes)\n  \
    weft suite prove --suites my-suites mpa/7.1.1-too-long    check a case of your own"
)]
pub(crate) struct Arguments {
    /// Check only the cases of this id, id prefix, requirement, section or tag
    ///
    /// weft checks a case if it matches at least one SELECT. Examples: the id
    /// `mpa/7.1.1-key/wrong-octet`, the requirement MPA-7.1.1-2, the section mpa/7.1 or MPA-7.1. A
    /// prefix is the part of an id before a `/`. `id[parameter=value]` selects one variant.
    #[arg(value_name = "SELECT")]
    select: Vec<String>,
    /// Use the suites of this folder instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
    /// Write the results to the folder `prove` in this folder
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
    /// Choose how many variants of each case to run
    ///
    /// `smoke` runs a few variants. `default` runs enough variants that any two values of different
    /// parameters occur together at least once. `full` runs all combinations of parameter values.
    #[arg(long, value_name = "TIER", default_value_t, value_parser = select::tier())]
    tier: Tier,
    /// Run this many cases at a time (default 1)
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

/// Checks the cases, prints the matrix, and writes the proofs. Returns exit code 1 if a case fails
/// against the correct endpoint, if a case passes with all of its deviations, or if a deviation
/// makes no case fail.
pub(crate) async fn judge(suites: &Suites, filter: &Filter, jobs: usize, out: &Path) -> anyhow::Result<ExitCode> {
    let out = out.join("prove");
    let matrix = prove(suites, filter, jobs, &out).await?;
    if matrix.cases.is_empty() {
        reject!("no case matches");
    }
    let proofs = out.join("proofs.csv");
    write_file(&proofs, Proofs::from_iter(matrix.proven.iter().cloned()).to_csv())?;
    let others =
        matrix.rows.iter().flat_map(|row| row.others.iter().map(|id| format!("{} {id}\n", row.deviation.name)));
    write_file(&out.join(OTHERS), others.collect::<String>())?;
    for row in matrix.rows.iter().filter(|row| !row.outcomes.is_empty()) {
        let breaks: Vec<&str> = row.deviation.breaks.iter().map(|requirement| requirement.as_str()).collect();
        print_line!("{}  {}", row.deviation.name, breaks.join(" "));
        for (case, outcome) in &row.outcomes {
            let word = match outcome {
                ProofOutcome::Caught => "caught",
                ProofOutcome::AlsoObserved => "also observed",
                ProofOutcome::Missed => "-",
            };
            print_line!("    {word:<13} {case}");
        }
        if !row.others.is_empty() {
            let others: Vec<&str> = row.others.iter().map(|requirement| requirement.as_str()).collect();
            print_line!("    other requirements that these cases report: {}", others.join(" "));
        }
    }
    let without_case: Vec<&str> = matrix.without_case().map(|row| row.deviation.name).collect();
    // If the user selects only a few cases, nearly all deviations concern no selected case. The
    // list would then be useless.
    if without_case.len() < matrix.rows.len() / 2 {
        print_line!("\ndeviations that concern no case:\n    {}", without_case.join("\n    "));
        print_line!("\ndeviations that the builtin targets cannot show:");
        for (deviation, why) in &matrix.unprovable {
            print_line!("    {}: {why}", deviation.name);
        }
    }
    for (role, result) in &matrix.not_passed {
        let CaseResult { key, verdict, explanation, .. } = result;
        print_line!("\nthe correct {role} did not pass {key} ({verdict}): {explanation}");
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
        "\n{} ({} for responders, {} for initiators), {} not applicable to weft's own endpoint\n{}: {} concern no \
         case, {} uncaught; unproven cases: {}",
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
    let complete = matrix.not_passed.is_empty() && uncaught.is_empty() && unproven.is_empty();
    Ok(ExitCode::from(u8::from(!complete)))
}
