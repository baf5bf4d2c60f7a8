//! The list of targets, the page of a target, and its baseline.

use std::collections::BTreeMap;

use axum::extract::{Extension, State};
use axum::response::Html;
use serde::Deserialize;
use weft_suites::model::Score;
use weft_suites::store::{RunRecord, RunsPage, UnstableCase};

use super::extract::{Path, Query};
use super::pairs;
use crate::access::Session;
use crate::app::App;
use crate::failure::Failure;
use crate::view::{self, OperatorForms, TargetsPage};

/// The maximum number of runs in a trend.
pub(super) const TREND: u32 = 30;
/// The maximum number of runs in a trend of the list of targets.
const SMALL_TREND: u32 = 20;
/// The maximum number of cases in a trend. A trend has only cases whose verdicts differ between its
/// runs.
const UNSTEADY: u32 = 100;

const UNKNOWN: Failure = Failure::NotFound("There is no such target, and the store has no run against it.");

pub(super) async fn list(State(app): State<App>, session: Option<Extension<Session>>) -> Result<Html<String>, Failure> {
    let stored = app.store.targets().await?;
    let (newest, _) = pairs::newest(&app, &stored).await?;
    let recent = app.store.recent_counts(SMALL_TREND).await?;
    let configured: Vec<_> = app.starter.states().collect();
    let now_ms = app.clock.now_ms();
    let next = |target: &str| app.schedule.next_ms(target, now_ms);
    let shown = TargetsPage {
        now_ms,
        configured: &configured,
        stored: &stored,
        newest: &newest,
        recent: &recent,
        next: &next,
        forms: OperatorForms::of(session.as_deref()),
    };
    Ok(Html(view::targets(&shown)?))
}

/// The query of the page of a target.
#[derive(Deserialize)]
pub(super) struct TargetQuery {
    /// The horizontal axis of the charts: the name of a label or of a fact about the target. Empty
    /// for the start of the runs.
    axis: Option<String>,
}

/// The results of the newest runs of a target.
pub(super) struct Trend {
    /// The newest runs, newest first.
    pub(super) runs: Vec<RunRecord>,
    /// The scores by id of the run.
    pub(super) scores: BTreeMap<String, Score>,
    /// Cases whose verdicts differ in these runs.
    pub(super) unsteady: Vec<UnstableCase>,
}

/// Returns the trend of a target.
pub(super) async fn trend(app: &App, target: &str) -> Result<Trend, Failure> {
    let page = RunsPage { target: Some(target), limit: TREND, ..RunsPage::default() };
    let runs = app.store.runs_of(page).await?;
    if runs.is_empty() && app.starter.state(target).is_none() {
        return Err(UNKNOWN);
    }
    let ids: Vec<&str> = runs.iter().map(|run| run.info.id.as_str()).collect();
    let scores = app.store.scores(&ids).await?;
    let unsteady = app.store.unsteady(&ids, UNSTEADY).await?;
    Ok(Trend { runs, scores, unsteady })
}

pub(super) async fn page(
    State(app): State<App>,
    Path(target): Path<String>,
    Query(query): Query<TargetQuery>,
    session: Option<Extension<Session>>,
) -> Result<Html<String>, Failure> {
    let Trend { runs, scores, unsteady } = trend(&app, &target).await?;
    let configured = app.starter.state(&target);
    let unfinished = app.store.unfinished(&target).await?;
    let shown = view::TargetPage {
        name: &target,
        configured,
        unfinished: unfinished.as_deref(),
        runs: &runs,
        scores: &scores,
        unsteady: &unsteady,
        axis: query.axis.as_deref(),
        forms: OperatorForms::of(session.as_deref()),
    };
    Ok(Html(view::target(shown)?))
}

pub(super) async fn baseline(State(app): State<App>, Path(target): Path<String>) -> Result<Html<String>, Failure> {
    let last = app.store.latest(&target).await?.filter(|last| last.record.summary.is_some());
    let configured = app.starter.state(&target).map(|(target, _)| target);
    if last.is_none() && configured.is_none() {
        return Err(UNKNOWN);
    }
    Ok(Html(view::baseline(&target, configured, last.as_ref())?))
}
