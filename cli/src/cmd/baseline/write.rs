//! `weft baseline write`: writes a baseline that expects the failures of a run. Failures that the
//! baseline of the run already expected are only counted.

use std::path::PathBuf;
use std::process::ExitCode;

use weft_core::text::visible_in_line;
use weft_dissector::output::text::counted;
use weft_suites::baseline::{FailureBaseline, of_failures, to_toml};

use crate::exit::{note, print_line, reject, write_file};
use crate::results::load_report;
use crate::runtime;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Each entry has the case, its verdict, the signature of the failure and a reason. If every\n\
    variant of a case ran, and all failed in the same way, the entry names the case. Otherwise each\n\
    variant has its own entry. A failure that the baseline of the run already expected gets no entry,\n\
    so you can append the new entries to that baseline.\n\
    You can replace entries by one entry for several cases: mpa/7.1.1-key/* for all cases of a\n\
    script, mpa/7.1/* for a section, or requirement:MPA-7.1.1-2 for all cases that judge a\n\
    requirement.\n\n\
    Examples:\n  \
    weft baseline write nic                                print the entries\n  \
    weft baseline write nic -o known.toml                  write a file for `weft test --baseline`\n  \
    weft baseline write nic >> known.toml                  append the new entries to this file")]
pub(crate) struct Arguments {
    /// Use this run: its folder, its report.json, or its id in the store
    #[arg(value_name = "RUN", default_value = "weft-report")]
    run: String,
    /// Write the baseline to this file, which must not exist, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Use this reason in each entry (default: the id of the run)
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Also expect the cases that were tried without a decision
    #[arg(long)]
    inconclusive: bool,
    /// Look up run ids in this store: a folder with results.sqlite, or a URL
    ///
    /// Set the password of PostgreSQL in PGPASSWORD.
    #[arg(long, value_name = "DIR|URL", default_value = "weft-report", env = "WEFT_STORE", hide_env_values = true)]
    store: String,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(path) = arguments.output.as_ref().filter(|path| path.is_file()) {
        reject!("{}: this file exists; use another name, so that its reasons are not lost", path.display());
    }
    let report = runtime::block_on(load_report(&arguments.run, &arguments.store))?;
    let reason = match &arguments.reason {
        Some(reason) if reason.trim().is_empty() => reject!("--reason: expected a text"),
        Some(reason) => reason.clone(),
        None => format!("fails since run {}", report.run.id),
    };
    let FailureBaseline { entries, already_expected, undecided } =
        of_failures(&report, &reason, arguments.inconclusive);
    let head = format!("# Known failures of {}, from run {}", report.run.target.name, report.run.id);
    let text = format!("{}\n\n{}", visible_in_line(&head), to_toml(&entries));
    match &arguments.output {
        Some(path) => write_file(path, &text)?,
        None => print_line!("{}", text.trim_end()),
    }
    let count = match entries.len() {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    };
    let failures = counted(report.summary.counts.fail, "failure");
    let known = match already_expected {
        0 => String::new(),
        count => format!("; its baseline already expected {}", counted(count, "result")),
    };
    note(&format!("{count} for a run with {failures}{known}"));
    if undecided > 0 {
        let cases = counted(undecided, "case");
        note(&format!("{cases} without a decision: no entry, so such a run exits with 3; --inconclusive adds entries"));
    }
    Ok(ExitCode::SUCCESS)
}
