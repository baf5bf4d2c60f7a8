//! `weft diff`: compares two runs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_core::text::Visible;
use weft_suites::diff::{Diff, Observed};
use weft_suites::model::RunReport;
use weft_suites::store::{FILE_NAME, Store};

use crate::exit::{BadInput, Verdict};
use crate::runtime;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Verdicts of cases and violations that were also observed are compared separately.\n\n\
    Exit codes: 1 a case fails newly or differently, or a violation is newly observed; 3 a case is\n\
    no longer decided, run or applicable; 0 otherwise.")]
pub(crate) struct Arguments {
    /// The earlier run: its folder, its report.json, or its id in the store
    before: String,
    /// The later run, in the same form
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

/// The lists of cases that only one of the runs has.
const ONE_SIDED: [&str; 2] = ["not run", "added"];

/// At most this many cases are named in such a list.
const MOST_NAMED: usize = 20;

/// Prints each difference.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    runtime::block_on(async {
        let before = load(&arguments.before, &arguments.store).await?;
        let after = load(&arguments.after, &arguments.store).await?;
        let diff = Diff::of(&before, &after);
        let mut out = Visible(Verdict::new(io::stdout().lock()));
        if arguments.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&diff)?)?;
        } else {
            print(&before, &after, &diff, &mut out)?;
        }
        Ok(ExitCode::from(diff.exit_code().code()))
    })
}

fn print(before: &RunReport, after: &RunReport, diff: &Diff, out: &mut impl Write) -> io::Result<()> {
    let name = |report: &RunReport| format!("{} ({})", report.run.id, report.run.target.name);
    writeln!(out, "before {}\nafter  {}", name(before), name(after))?;
    for (what, changes) in diff.lists().filter(|(_, changes)| !changes.is_empty()) {
        writeln!(out, "\n{what}: {}", changes.len())?;
        // All failing and fixed cases are listed; for cases of one run alone, some names are
        // enough.
        let is_short = ONE_SIDED.contains(&what) || what == "newly not applicable";
        let most = if is_short { MOST_NAMED } else { changes.len() };
        for change in changes.iter().take(most) {
            writeln!(out, "  {}  {}", change.key, change.text)?;
        }
        if changes.len() > most {
            writeln!(out, "  and {} more; --json lists all", changes.len() - most)?;
        }
    }
    for (what, observed) in diff.observations().filter(|(_, observed)| !observed.is_empty()) {
        writeln!(out, "\n{what}, in cases about something else: {}", observed.len())?;
        for Observed { requirement, cases } in observed {
            let cases = if *cases == 1 { "1 case".to_owned() } else { format!("{cases} cases") };
            writeln!(out, "  {requirement}  in {cases}: {}", requirement.row().summary)?;
        }
    }
    writeln!(out, "\nthe same: {}", diff.same)?;
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

async fn load(name: &str, store: &str) -> anyhow::Result<RunReport> {
    let path = PathBuf::from(name);
    let file = if path.is_dir() { path.join("report.json") } else { path };
    if file.is_file() {
        let failed = |error: &dyn std::fmt::Display| BadInput(format!("{}: {error}", file.display()));
        let text = std::fs::read(&file).map_err(|error| failed(&error))?;
        return Ok(serde_json::from_slice(&text).map_err(|error| failed(&error))?);
    }
    let nothing = || {
        BadInput(format!(
            "{name} is neither the folder of a run, nor a report.json, nor a run of the store {store}; --store names another"
        ))
    };
    let store = match store.contains("://") {
        true => Store::connect(store).await?,
        false if Path::new(store).join(FILE_NAME).is_file() => Store::open(&Path::new(store).join(FILE_NAME)).await?,
        false => return Err(nothing().into()),
    };
    let report = store.report(name).await?.ok_or_else(nothing)?;
    store.close().await;
    Ok(report)
}
