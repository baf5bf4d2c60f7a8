//! The page of a target: its current, queued and finished runs.

use std::collections::BTreeMap;

use askama::Template;
use weft_suites::model::{RunStatus, Score, Tier};
use weft_suites::store::{RunRecord, UnstableCase};
use weft_suites::targets::Target;

use super::chart::chart;
use super::counts::{Count, counts};
use super::operator::OperatorForms;
use super::runs::{Line, line};
use super::trend::{Trends, trends};
use super::{time, url};
use crate::starter::QueueState;

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
    /// The horizontal axis of the charts, as the client requests it.
    pub(crate) axis: Option<&'a str>,
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
    trends: Trends,
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
    let TargetPage { name, configured, unfinished, runs, scores, unsteady, axis, forms } = shown;
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
        trends: trends(runs, name, axis)?,
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
