//! Rebuilds the report of a run from its files. This helps if a run was killed before it wrote its
//! reports, or if the reports are lost. Also makes the report of an interrupted run from its store.
//!
//! The results store has the plan and the results. Missing results come from `report.json` and from
//! the transcripts in the run's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::baseline::{self, BaselineEntry, Comparison};
use crate::evidence;
use crate::folder;
use crate::model::{CaseInfo, CaseKey, CaseResult, RunInfo, RunReport, RunStatus, Summary};
use crate::script::Suites;
use crate::store::{Store, StoreError};

/// Why the report cannot be rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The folder has no run.
    #[error("{path}: this folder has no run", path = path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// The results store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The data of a run that the store and the run's folder still have.
#[derive(Default)]
struct RecoveredData {
    cases: Vec<CaseInfo>,
    /// The planned variants in their order. Empty if only their number is known.
    order: Vec<CaseKey>,
    planned: u64,
    results: BTreeMap<CaseKey, CaseResult>,
    /// The summaries of the run in the store and in `report.json`, if there are any.
    summaries: Vec<Summary>,
    spent_us: u64,
}

/// Returns the report of the run in `folder`. `suites` are the suites of that run. `baseline` is
/// the target's baseline. It is used only for a run that did not end normally.
///
/// # Errors
/// The folder has no run, or the store cannot be read.
pub async fn recover(
    folder: &Path,
    store: Option<&Store>,
    suites: &Suites,
    baseline: &[BaselineEntry],
) -> Result<RunReport, RecoverError> {
    let run = folder::run_of(folder).ok_or_else(|| RecoverError::NoRun { path: folder.to_owned() })?;
    let mut recovered = match store {
        Some(store) => read_store(store, &run.id).await?,
        None => RecoveredData::default(),
    };
    recovered.add_report(folder, &run);
    if recovered.ended().is_none() {
        recovered.add_transcripts(folder);
    }
    Ok(recovered.report(run, suites, baseline))
}

/// Returns the report of a run whose process ended before it wrote a summary. The report has the
/// results in `store`, and no others, because a resumed run also has only these. The run is done if
/// all planned cases have a result. Otherwise it counts as cancelled. `suites` are the suites of
/// the run. `baseline` is the target's baseline.
///
/// Returns `None` if the store has no such run, or if the run has a summary. The caller makes sure
/// that no process works on the run.
///
/// # Errors
/// The store cannot be read.
pub async fn interrupted(
    store: &Store,
    run: &str,
    suites: &Suites,
    baseline: &[BaselineEntry],
) -> Result<Option<RunReport>, StoreError> {
    let Some(record) = store.record(run).await?.filter(|record| record.summary.is_none()) else { return Ok(None) };
    let Some(report) = store.report(run).await? else { return Ok(None) };
    let is_complete = record.planned == report.results.len() as u64;
    let status = if is_complete { RunStatus::Done } else { RunStatus::Cancelled };
    let spent_us = report.summary.duration_us;
    let summary = summary(status, record.planned, &report.results, spent_us, suites, baseline)
        .with_lost_capabilities(&record.info.target.lost_capabilities);
    Ok(Some(RunReport { summary, ..report }))
}

/// Returns the summary of results, with the baseline of the target.
fn summary(
    status: RunStatus,
    planned: u64,
    results: &[CaseResult],
    spent_us: u64,
    suites: &Suites,
    baseline: &[BaselineEntry],
) -> Summary {
    let Comparison { expected, stale, unmatched } = baseline::judge(baseline, results, status, suites);
    Summary { unmatched, ..Summary::with_baseline(status, planned, results, spent_us, expected, stale) }
}

async fn read_store(store: &Store, run: &str) -> Result<RecoveredData, StoreError> {
    let (Some(detail), Some(report)) = (store.run(run).await?, store.report(run).await?) else {
        return Ok(RecoveredData::default());
    };
    Ok(RecoveredData {
        cases: detail.cases,
        planned: detail.planned.len() as u64,
        order: detail.planned.into_iter().map(|planned| planned.key).collect(),
        spent_us: report.summary.duration_us,
        results: report.results.into_iter().map(|result| (result.key.clone(), result)).collect(),
        summaries: detail.record.summary.into_iter().collect(),
    })
}

impl RecoveredData {
    /// Adds the data that only an earlier `report.json` of the run has.
    fn add_report(&mut self, folder: &Path, run: &RunInfo) {
        let Ok(text) = fs::read(folder.join("report.json")) else { return };
        let report: RunReport = match serde_json::from_slice(&text) {
            Ok(report) => report,
            Err(error) => return tracing::warn!("ignoring report.json, because it cannot be read: {error}"),
        };
        if report.run.id != run.id {
            return;
        }
        if self.cases.is_empty() {
            self.cases = report.cases;
            self.planned = report.summary.planned;
            self.order = report.results.iter().map(|result| result.key.clone()).collect();
        }
        self.spent_us = self.spent_us.max(report.summary.duration_us);
        self.summaries.push(report.summary);
        for result in report.results {
            self.results.entry(result.key.clone()).or_insert(result);
        }
    }

    fn add_transcripts(&mut self, folder: &Path) {
        for file in evidence::transcripts(folder) {
            // The process may have been killed while it wrote this file.
            let read = fs::read(&file).map_err(|error| error.to_string());
            match read.and_then(|text| serde_json::from_slice::<CaseResult>(&text).map_err(|error| error.to_string())) {
                Ok(mut result) => {
                    result.shorten_steps();
                    self.results.entry(result.key.clone()).or_insert(result);
                }
                Err(error) => tracing::warn!("ignoring {}, because it cannot be read: {error}", file.display()),
            }
        }
    }

    /// Returns the summary of all results, if the run ended normally.
    fn ended(&self) -> Option<&Summary> {
        self.summaries.iter().find(|summary| summary.counts.total() == self.results.len() as u64)
    }

    fn report(mut self, run: RunInfo, suites: &Suites, baseline: &[BaselineEntry]) -> RunReport {
        let ended = self.ended().cloned();
        let mut ordered: Vec<CaseResult> = self.order.iter().filter_map(|key| self.results.remove(key)).collect();
        // Results that are not in the plan are sorted by key.
        ordered.extend(self.results.into_values());
        let mut cases = self.cases;
        if cases.is_empty() {
            let ids: BTreeSet<&str> = ordered.iter().map(|result| result.key.case.as_str()).collect();
            cases = ids.into_iter().filter_map(|id| Some(suites.case(id)?.info.clone())).collect();
        }
        let planned = self.planned.max(ordered.len() as u64);
        let summary = ended.unwrap_or_else(|| {
            // If the plan is lost, `planned` is 0. A run with results then counts as incomplete.
            let is_complete = self.planned == ordered.len() as u64;
            let status = if is_complete { RunStatus::Done } else { RunStatus::Broken };
            summary(status, planned, &ordered, self.spent_us, suites, baseline)
                .with_lost_capabilities(&run.target.lost_capabilities)
        });
        RunReport { run, cases, results: ordered, summary }
    }
}
