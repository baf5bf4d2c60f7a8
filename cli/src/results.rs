//! The results of a test run: its folder, its results store, its progress lines and its reports.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weft_suites::model::{EventSink, RunReport};
use weft_suites::targets::OpenError;
use weft_suites::{RunOptions, Schedule, report, store};

use crate::exit::{self, BadInput, print_line, reject};
use crate::input::open_error;

/// Opens the results store at a URL. Without a URL, opens the store in the folder `out`.
pub(crate) async fn open_store(url: Option<&str>, out: &Path) -> anyhow::Result<store::Store> {
    Ok(match url {
        Some(url) => store::Store::connect(url).await?,
        None => {
            let file = out.join(store::FILE_NAME);
            if !file.is_file() {
                reject!("{}: there is no such results store", file.display());
            }
            store::Store::open(&file).await?
        }
    })
}

/// Loads the report of a run. `name` is the run's folder, its report.json, or its id in the store.
pub(crate) async fn load_report(name: &str, store: &str) -> anyhow::Result<RunReport> {
    let path = PathBuf::from(name);
    let file = if path.is_dir() { path.join("report.json") } else { path };
    if file.is_file() {
        let failed = |error: &dyn std::fmt::Display| BadInput(format!("{}: {error}", file.display()));
        let text = std::fs::read(&file).map_err(|error| failed(&error))?;
        return Ok(serde_json::from_slice(&text).map_err(|error| failed(&error))?);
    }
    let nothing = || {
        BadInput(format!(
            "{name} is neither the folder of a run, nor a report.json, nor a run of the store {store}; for another \
             store, use --store"
        ))
    };
    let opened = match store.contains("://") {
        true => store::Store::connect(store).await?,
        false if Path::new(store).join(store::FILE_NAME).is_file() => {
            store::Store::open(&Path::new(store).join(store::FILE_NAME)).await?
        }
        false => return Err(nothing().into()),
    };
    let report = opened.report(name).await?.ok_or_else(nothing)?;
    opened.close().await;
    Ok(report)
}

/// Creates the folder for the run's files. If that fails, the user gets a usage error.
pub(crate) fn make_folder(out: &Path) -> anyhow::Result<()> {
    let failed = |error| BadInput(format!("{}: {}", out.display(), exit::unwritable(out, &error)));
    Ok(std::fs::create_dir_all(out).map_err(failed)?)
}

/// Makes the printer of a run's progress lines, in colour on a terminal. `verbose` adds a line for
/// each case that does not run, and `quiet` removes the line for each case that passes. `folder` is
/// the folder of the run.
pub(crate) fn terminal(verbose: bool, quiet: bool, folder: &Path) -> report::Terminal<io::Stdout> {
    let out = io::stdout();
    let colour = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    report::Terminal::new(out, colour).verbose(verbose).quiet(quiet).folder(folder)
}

/// Runs the cases and writes all reports into the run's folder. Prints nothing.
pub(crate) async fn record(
    options: RunOptions,
    schedule: Schedule,
    sink: Arc<dyn EventSink>,
) -> anyhow::Result<RunReport> {
    let out = options.out.clone();
    let report = judged(options, schedule, sink).await?;
    report::write_all(&report, &out)?;
    Ok(report)
}

/// Writes the Allure results of a run if the user named a folder for them. `out` is the folder of
/// the run.
pub(crate) fn write_allure(report: &RunReport, out: &Path, folder: Option<&Path>) -> anyhow::Result<()> {
    if let Some(folder) = folder {
        report::allure(report, out, folder)?;
        print_line!("allure results: {}", folder.display());
    }
    Ok(())
}

/// Runs the cases. If the run cannot be resumed or the folder is in use, the user gets a usage
/// error.
pub(crate) async fn judged(
    options: RunOptions,
    schedule: Schedule,
    sink: Arc<dyn EventSink>,
) -> anyhow::Result<RunReport> {
    weft_suites::run_with(options, schedule, sink).await.map_err(|error| match error {
        error @ (weft_suites::RunError::Resume(_) | weft_suites::RunError::Busy { .. }) => {
            BadInput(error.to_string()).into()
        }
        weft_suites::RunError::Store(error) => error.into(),
        error @ weft_suites::RunError::Target(OpenError::Resolve { .. }) => exit::unreachable(&error),
        weft_suites::RunError::Write { path, error } => {
            anyhow::anyhow!("{}: {}", path.display(), exit::unwritable(&path, &error))
        }
        weft_suites::RunError::Capture(error) => open_error(&error),
        other => other.into(),
    })
}
