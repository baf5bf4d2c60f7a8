//! `weft diff`: compares the results of two test runs.

use std::io::{self, Write};
use std::process::ExitCode;

use weft_core::text::Visible;
use weft_suites::diff::{Diff, ObservedViolation};
use weft_suites::model::RunReport;

use crate::exit::VerdictOutput;
use crate::results::load_report;
use crate::runtime;

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "weft compares the verdict of each case. In a case, a target can also violate requirements that\n\
    the case does not test. weft compares these violations, too.\n\n\
    Exit codes:\n  \
    0  no relevant difference\n  \
    1  a case newly fails, a case fails differently, or weft observed a new violation\n  \
    3  in the later run, a case became inconclusive or not applicable, or did not run\n\n\
    Examples:\n  \
    weft diff nic-before nic-after                     compare the runs in two folders\n  \
    weft diff nic/earlier/20260131T120000.123Z-1f3a nic   compare with an earlier run"
)]
pub(crate) struct Arguments {
    /// Use this as the earlier run: its folder, its report.json, or its id in the store
    before: String,
    /// Use this as the later run: its folder, its report.json, or its id in the store
    after: String,
    /// Look up run ids in this store: a folder with results.sqlite, or a URL
    ///
    /// Set the password of PostgreSQL in PGPASSWORD.
    #[arg(long, value_name = "DIR|URL", default_value = "weft-report", env = "WEFT_STORE", hide_env_values = true)]
    store: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Names of the lists with the cases that only one of the runs has.
const ONE_SIDED: [&str; 2] = ["not run", "added"];

/// Maximum number of cases that weft prints from a list in [`ONE_SIDED`], or from the list of newly
/// inapplicable cases.
const MAX_LISTED_CASES: usize = 20;

/// Prints each difference.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    runtime::block_on(async {
        let before = load_report(&arguments.before, &arguments.store).await?;
        let after = load_report(&arguments.after, &arguments.store).await?;
        let diff = Diff::of(&before, &after);
        let mut out = Visible(VerdictOutput::new(io::stdout().lock()));
        if arguments.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&diff)?)?;
        } else {
            print(&before, &after, &diff, &mut out)?;
        }
        Ok(ExitCode::from(diff.exit_code().code()))
    })
}

/// Prints the differences as text.
fn print(before: &RunReport, after: &RunReport, diff: &Diff, out: &mut impl Write) -> io::Result<()> {
    let name = |report: &RunReport| format!("{} ({})", report.run.id, report.run.target.name);
    writeln!(out, "before {}\nafter  {}", name(before), name(after))?;
    for (what, changes) in diff.lists().filter(|(_, changes)| !changes.is_empty()) {
        writeln!(out, "\n{what}: {}", changes.len())?;
        // Print all failing and fixed cases. Print only some of the cases that one run lacks, or
        // that are newly not applicable.
        let is_short = ONE_SIDED.contains(&what) || what == "newly not applicable";
        let most = if is_short { MAX_LISTED_CASES } else { changes.len() };
        for change in changes.iter().take(most) {
            writeln!(out, "  {}  {}", change.key, change.text)?;
        }
        if changes.len() > most {
            writeln!(out, "  and {} more; --json lists all", changes.len() - most)?;
        }
    }
    for (what, observed) in diff.observations().filter(|(_, observed)| !observed.is_empty()) {
        writeln!(out, "\nviolations {what}, in cases that do not test the requirement: {}", observed.len())?;
        for ObservedViolation { requirement, cases } in observed {
            let cases = if *cases == 1 { "1 case".to_owned() } else { format!("{cases} cases") };
            writeln!(out, "  {requirement}  in {cases}: {}", requirement.row().summary)?;
        }
    }
    writeln!(out, "\nunchanged: {}", diff.same)?;
    let (first, second) = (before.run.seed, after.run.seed);
    if first != second && diff.lists().any(|(what, changes)| ONE_SIDED.contains(&what) && !changes.is_empty()) {
        writeln!(
            out,
            "The seeds are {first} and {second}, so the runs may have different variants of a case. \
             Use the same --seed for both."
        )?;
    }
    Ok(())
}
