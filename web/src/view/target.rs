//! The list of targets, and the page of a target: its current, queued and finished runs.

use std::collections::BTreeMap;

use askama::Template;
use weft_suites::model::{RunStatus, Score, Tier};
use weft_suites::store::{RunRecord, TargetRecord, UnstableCase};
use weft_suites::targets::Target;

use super::chart::chart;
use super::counts::{Count, counts};
use super::operator::OperatorForms;
use super::runs::{Line, line};
use super::{time, url};
use crate::starter::QueueState;

#[derive(Template)]
#[template(path = "targets.html")]
struct ListPage<'a> {
    lines: Vec<ListLine<'a>>,
    /// Whether the server can start runs.
    can_start: bool,
    /// Whether the client is an operator.
    is_operator: bool,
}

struct ListLine<'a> {
    name: &'a str,
    href: String,
    reached_by: String,
    role: String,
    runs: u64,
    last: Option<String>,
    state: Option<&'a QueueState>,
    running: Option<String>,
}

/// Renders the list of all targets: first the targets against which the server can start runs, then
/// the other targets of the store.
pub(crate) fn targets(
    configured: &[(&Target, QueueState)],
    stored: &[TargetRecord],
    forms: Option<OperatorForms<'_>>,
) -> Result<String, askama::Error> {
    let find = |name: &str| stored.iter().find(|one| one.name == name);
    let own = configured.iter().map(|(target, state)| ListLine {
        reached_by: target.info().reached_by,
        role: target.info().role.to_string(),
        state: Some(state),
        running: state.running.as_ref().and_then(|job| job.run.as_deref()).map(url::run),
        ..list_line(target.name(), find(target.name()))
    });
    let is_own = |name: &str| configured.iter().any(|(target, _)| target.name() == name);
    let others = stored.iter().filter(|one| !is_own(&one.name)).map(|one| list_line(&one.name, Some(one)));
    ListPage { lines: own.chain(others).collect(), can_start: !configured.is_empty(), is_operator: forms.is_some() }
        .render()
}

/// Makes the line of a target against which the server cannot start runs.
fn list_line<'a>(name: &'a str, stored: Option<&TargetRecord>) -> ListLine<'a> {
    ListLine {
        name,
        href: url::target(name),
        reached_by: String::new(),
        role: String::new(),
        runs: stored.map_or(0, |one| one.runs),
        last: stored.map(|one| url::run(&one.last)),
        state: None,
        running: None,
    }
}

/// The data of the page of a target.
pub(crate) struct TargetPage<'a> {
    pub(crate) name: &'a str,
    /// The target and its jobs. `None` if the server cannot start runs against the target.
    pub(crate) configured: Option<(&'a Target, QueueState)>,
    /// Id of a run that can be resumed.
    pub(crate) unfinished: Option<&'a str>,
    /// The newest runs of the target, newest first.
    pub(crate) runs: &'a [RunRecord],
    pub(crate) scores: &'a BTreeMap<String, Score>,
    pub(crate) unsteady: &'a [UnstableCase],
    pub(crate) forms: Option<OperatorForms<'a>>,
}

#[derive(Template)]
#[template(path = "target.html")]
struct Page<'a> {
    name: &'a str,
    href: String,
    reached_by: Option<String>,
    state: Option<QueueState>,
    running: Option<String>,
    forms: Option<OperatorForms<'a>>,
    /// A run that can be resumed: address and start time.
    resume: Option<(String, String)>,
    tiers: [Tier; 3],
    chart: String,
    lines: Vec<Line<'a>>,
    unsteady: Vec<UnsteadyLine>,
    baseline: String,
}

struct UnsteadyLine {
    key: String,
    href: Option<String>,
    counts: Vec<Count>,
}

/// Renders the page of a target.
pub(crate) fn target(shown: TargetPage<'_>) -> Result<String, askama::Error> {
    let TargetPage { name, configured, unfinished, runs, scores, unsteady, forms } = shown;
    let (reached_by, state) = match configured {
        Some((target, state)) => (Some(target.info().reached_by), Some(state)),
        None => (runs.first().map(|run| run.info.target.reached_by.clone()), None),
    };
    let running = state.as_ref().and_then(|state| state.running.as_ref()?.run.clone());
    let resume = unfinished.filter(|run| running.as_deref() != Some(*run)).and_then(|run| {
        let record = runs.iter().find(|record| record.info.id == run)?;
        Some((url::run(run), time::utc(record.info.started_unix_ms)))
    });
    let lines = runs.iter().enumerate().map(|(at, record)| {
        let before = runs.get(at + 1).filter(|before| before.status == RunStatus::Done);
        let compare = before.map(|before| url::compare(&before.info.id, &record.info.id));
        Line { compare, ..line(record, scores.get(&record.info.id)) }
    });
    let newest = runs.first().map(|run| run.info.id.as_str());
    let page = Page {
        name,
        href: url::target(name),
        reached_by,
        running: running.as_deref().map(url::run),
        state,
        forms,
        resume,
        tiers: Tier::ALL,
        chart: chart(runs),
        lines: lines.collect(),
        unsteady: unsteady
            .iter()
            .map(|one| UnsteadyLine {
                key: one.key.to_string(),
                href: newest.map(|run| url::case(run, &one.key)),
                counts: counts(&one.counts),
            })
            .collect(),
        baseline: url::baseline(name),
    };
    page.render()
}
