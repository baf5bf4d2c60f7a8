//! The list of targets: for each target its verdict, the age of the verdict, the trend, and what is
//! running.

use std::collections::BTreeMap;

use askama::Template;
use weft_suites::model::Counts;
use weft_suites::report::sparkline;
use weft_suites::store::{Latest, TargetRecord};
use weft_suites::targets::Target;

use super::counts::{outcome, partial};
use super::operator::OperatorForms;
use super::{time, url};
use crate::starter::QueueState;

/// The data of the page.
pub(crate) struct TargetsPage<'a> {
    /// The current time, in milliseconds since 1970-01-01 UTC.
    pub(crate) now_ms: u64,
    /// The targets against which the server can start runs.
    pub(crate) configured: &'a [(&'a Target, QueueState)],
    /// The targets of the store.
    pub(crate) stored: &'a [TargetRecord],
    /// The results that represent each target. A few targets may be missing.
    pub(crate) newest: &'a [Latest],
    /// The counts of the last runs by target, oldest first.
    pub(crate) recent: &'a BTreeMap<String, Vec<Counts>>,
    /// Returns the next time of the schedule for a target, in milliseconds since 1970-01-01 UTC.
    pub(crate) next: &'a dyn Fn(&str) -> Option<u64>,
    pub(crate) forms: Option<OperatorForms<'a>>,
}

#[derive(Template)]
#[template(path = "targets.html")]
struct Page<'a> {
    lines: Vec<Line<'a>>,
    /// Whether the server can start runs.
    can_start: bool,
    /// Whether the client is an operator.
    is_operator: bool,
}

struct Line<'a> {
    name: &'a str,
    href: String,
    reached_by: String,
    role: String,
    runs: u64,
    verdict: Option<TargetVerdict>,
    /// The pass rate of the last run, for example `97.5 %`.
    rate: String,
    /// The pass rates of the last runs as SVG.
    trend: String,
    state: Option<&'a QueueState>,
    running: Option<String>,
    /// The next time of the schedule.
    next: Option<String>,
}

/// The verdict of the run that represents a target.
struct TargetVerdict {
    class: &'static str,
    words: &'static str,
    run: String,
    started: String,
    age: String,
    /// Why the run is partial.
    partial: Option<&'static str>,
}

/// Renders the list of all targets: first the targets against which the server can start runs, then
/// the other targets of the store.
pub(crate) fn targets(shown: &TargetsPage<'_>) -> Result<String, askama::Error> {
    let find = |name: &str| shown.stored.iter().find(|one| one.name == name);
    let is_own = |name: &str| shown.configured.iter().any(|(target, _)| target.name() == name);
    let mut lines = Vec::new();
    for (target, state) in shown.configured {
        lines.push(Line {
            reached_by: target.info().reached_by,
            role: target.info().role.to_string(),
            state: Some(state),
            running: state.running.as_ref().and_then(|job| job.run.as_deref()).map(url::run),
            next: (shown.next)(target.name()).map(time::utc),
            ..line(shown, target.name(), find(target.name()))?
        });
    }
    for one in shown.stored.iter().filter(|one| !is_own(&one.name)) {
        lines.push(line(shown, &one.name, Some(one))?);
    }
    Page { lines, can_start: !shown.configured.is_empty(), is_operator: shown.forms.is_some() }.render()
}

/// Makes the line of a target against which the server cannot start runs.
fn line<'a>(shown: &TargetsPage<'a>, name: &'a str, stored: Option<&TargetRecord>) -> Result<Line<'a>, askama::Error> {
    let latest = shown.newest.iter().find(|latest| latest.record.info.target.name == name);
    let info = latest.map(|latest| &latest.record.info.target);
    let rates: Vec<f64> = shown.recent.get(name).into_iter().flatten().filter_map(Counts::pass_rate).collect();
    Ok(Line {
        name,
        href: url::target(name),
        reached_by: info.map(|info| info.reached_by.clone()).unwrap_or_default(),
        role: info.map(|info| info.role.to_string()).unwrap_or_default(),
        runs: stored.map_or(0, |one| one.runs),
        verdict: latest.map(|latest| verdict(latest, shown.now_ms)),
        rate: rates.last().map(|rate| percent(*rate)).unwrap_or_default(),
        trend: trend(&rates)?,
        state: None,
        running: None,
        next: None,
    })
}

fn verdict(latest: &Latest, now_ms: u64) -> TargetVerdict {
    let record = latest.deciding();
    let (class, words) = outcome(record);
    TargetVerdict {
        class,
        words,
        run: url::run(&record.info.id),
        started: time::utc(record.info.started_unix_ms),
        age: time::ago(now_ms, record.info.started_unix_ms),
        partial: partial(record),
    }
}

/// Returns the pass rates of runs, oldest first, as a small line.
fn trend(rates: &[f64]) -> Result<String, askama::Error> {
    let (Some(first), Some(last)) = (rates.first(), rates.last()) else { return Ok(String::new()) };
    let name = format!("Pass rate of the last {} runs: from {} to {}", rates.len(), percent(*first), percent(*last));
    sparkline(rates, &name)
}

/// Formats a share. Only a complete pass is `100 %`.
pub(super) fn percent(rate: f64) -> String {
    if rate < 100.0 { format!("{:.1} %", rate.min(99.9)) } else { "100 %".to_owned() }
}
