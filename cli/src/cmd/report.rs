//! `weft report`: writes the reports of a run that has finished or was killed, from the files in
//! the run's folder.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_suites::model::{CaseResult, Event, EventSink, RunReport, Tier};
use weft_suites::recover::recover;
use weft_suites::store::Store;
use weft_suites::{folder, report};

use crate::exit::{note, print_line, reject};
use crate::results::{terminal, write_allure};
use crate::runtime;
use crate::select;
use crate::suites::load;
use crate::target::{baseline_of, resolve};

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "weft writes report.html, report.json, report.sarif, report.tap, junit.xml and summary.md, prints\n\
    the same lines as `weft test`, and exits with the exit code of the run.\n\
    If the run was killed, the reports have only the results so far. To run the remaining cases, use\n\
    `weft test --resume`.\n\n\
    Examples:\n  \
    weft report nic                                      report the newest run in the folder nic\n  \
    weft report nic/earlier/20260131T120000.123Z-1f3a    report an earlier run\n  \
    weft report nic --allure allure-results              write results for Allure\n  \
    weft report nic --target nic.toml                    mark known failures of a killed run\n  \
    weft report nic --ticket mpa/7.1.1-key/wrong-octet   describe a failure for the maker of the NIC"
)]
pub(crate) struct Arguments {
    /// Read the newest run in this folder (the folder of `weft test --out`)
    ///
    /// For an earlier run, use DIR/earlier/RUN.
    #[arg(value_name = "DIR", default_value = "weft-report")]
    folder: PathBuf,
    /// Use this results store instead of results.sqlite in DIR
    ///
    /// The URL is sqlite://PATH or postgres://USER@HOST/DATABASE. Set the password of PostgreSQL in
    /// PGPASSWORD, not in the URL.
    #[arg(long, value_name = "URL", env = "WEFT_STORE", hide_env_values = true)]
    store: Option<String>,
    /// For a killed run: mark the known failures that this target file lists
    ///
    /// The list of known failures is the baseline of the target file. If the run was not killed,
    /// its results are already marked. Then weft ignores this option.
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// For a killed run: mark the known failures that this file of `weft baseline write` lists
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Use the suites of this folder if the run did not use the built-in suites
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
    /// Print the text of a ticket about a case that failed, in Markdown, and write no reports
    ///
    /// The text has the violated requirement with a link to its section, the identity of the target,
    /// the last steps with their bytes, the command that reproduces the failure, and an entry for the
    /// baseline of the target file. CASE is a case, or a variant with its parameters.
    #[arg(long, value_name = "CASE")]
    ticket: Option<String>,
    /// Also write Allure results to this folder
    ///
    /// `allure serve DIR` shows them. weft keeps the results of other runs in this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "ticket")]
    allure: Option<PathBuf>,
    /// Print each case that did not run, instead of counts by reason
    #[arg(long, short)]
    verbose: bool,
}

/// Writes the reports.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let out = &arguments.folder;
    let suites = load(arguments.suites.as_deref())?;
    let target = arguments.target.as_ref().map(|name| resolve(name, &[], false)).transpose()?;
    let baseline = baseline_of(target.as_ref(), arguments.baseline.as_deref())?;
    if folder::run_of(out).is_none() {
        reject!("{}: this folder has no run; use the folder of `weft test --out`", out.display());
    }
    let Some(_kept) = folder::lock_idle(out) else {
        reject!("{}: a run is writing into this folder; wait until it ends", out.display());
    };
    runtime::block_on(async {
        let store = open(arguments.store.as_deref(), out).await;
        let report = recover(out, store.as_ref(), &suites, &baseline).await?;
        if let Some(store) = store {
            store.close().await;
        }
        if let Some(case) = &arguments.ticket {
            let Some(text) = report::ticket(&report, case) else {
                let is_meant = |result: &CaseResult| result.key.case == *case || result.key.to_string() == *case;
                if !report.results.iter().any(is_meant) {
                    select::each_selects(&suites, std::slice::from_ref(case), Tier::Full)?;
                }
                reject!("{case} has no failure in this run; the report lists the cases that failed");
            };
            print_line!("{}", text.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        replay(&report, &terminal(arguments.verbose, false, out));
        report::write_all(&report, out)?;
        write_allure(&report, out, arguments.allure.as_deref())?;
        print_line!("report: {}", out.join("report.html").display());
        Ok(ExitCode::from(report.summary.exit_code.code()))
    })
}

/// Opens the results store of the run. If this fails, prints a note and returns `None`. The reports
/// then use only the files in the run's folder.
async fn open(url: Option<&str>, out: &Path) -> Option<Store> {
    let opened = match url {
        Some(url) => Store::connect(url).await,
        None => Store::open(&folder::store_of(out)?).await,
    };
    opened.inspect_err(|error| note(&format!("{error}; using only the files in the run's folder"))).ok()
}

/// Prints the verdicts of a run, in the same format as `weft test`.
fn replay(report: &RunReport, sink: &impl EventSink) {
    let planned = report.results.iter().map(|result| result.key.clone()).collect();
    sink.event(&Event::RunStarted { run: report.run.clone(), cases: report.cases.clone(), planned });
    if let Some(headline) = report.summary.target_down.clone() {
        sink.event(&Event::TargetDown { headline });
    }
    for result in &report.results {
        sink.event(&Event::CaseFinished { result: Box::new(result.clone()) });
    }
    sink.event(&Event::RunFinished { summary: report.summary.clone() });
}
