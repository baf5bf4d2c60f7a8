//! The JSON of the dashboard: what its pages show, for programs. Documents are those of `report.json`, so that whoever reads one of
//! them reads the other.

mod captures;
mod describe;
mod model;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use weft_suites::model::CaseResult;
use weft_suites::store::{RunsPage, StoreError};

use super::{find_case, find_run};
use crate::app::{App, Failure};
use model::{Cases, Problem, Run, RunEntry, Runs, Targets};

/// Runs in an answer: without a word about it, and at most.
const RUNS: u32 = 50;
const MOST_RUNS: u32 = 200;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/openapi.json", get(async || Json(describe::document())))
        .route("/runs", get(runs))
        .route("/runs/{run}", get(run))
        .route("/runs/{run}/cases", get(cases))
        .route("/runs/{run}/cases/{*case}", get(case))
        .route("/targets", get(targets))
        .merge(captures::routes())
        .fallback(async || ApiFailure(Failure::NotFound("There is no such resource.")))
}

/// A failure whose words come as JSON.
struct ApiFailure(Failure);

impl<T: Into<Failure>> From<T> for ApiFailure {
    fn from(failure: T) -> Self {
        ApiFailure(failure.into())
    }
}

impl IntoResponse for ApiFailure {
    fn into_response(self) -> Response {
        let wait = matches!(self.0, Failure::Reading(_) | Failure::Busy).then_some([(header::RETRY_AFTER, "1")]);
        let (status, error): (StatusCode, String) = self.0.told();
        (status, wait, Json(Problem { error })).into_response()
    }
}

/// What is asked of the list of runs.
#[derive(Debug, Deserialize)]
struct Asked {
    target: Option<String>,
    before: Option<String>,
    limit: Option<u32>,
}

async fn runs(State(app): State<App>, Query(asked): Query<Asked>) -> Result<Json<Runs>, ApiFailure> {
    let limit = asked.limit.unwrap_or(RUNS).clamp(1, MOST_RUNS);
    let page = RunsPage { target: asked.target.as_deref(), before: asked.before.as_deref(), limit: limit + 1 };
    let mut runs: Vec<RunEntry> = app.store.runs_of(page).await?.into_iter().map(RunEntry::from).collect();
    // One more was asked for, to know whether there is more.
    let is_more = runs.len() > limit as usize;
    runs.truncate(limit as usize);
    let older = runs.last().filter(|_| is_more).map(|last| last.run.id.clone());
    Ok(Json(Runs { runs, older }))
}

async fn run(State(app): State<App>, Path(run): Path<String>) -> Result<Json<Run>, ApiFailure> {
    let detail = find_run(&app, &run).await?;
    Ok(Json(Run { entry: detail.record.into(), cases: detail.cases }))
}

async fn cases(State(app): State<App>, Path(run): Path<String>) -> Result<Json<Cases>, ApiFailure> {
    let detail = find_run(&app, &run).await?;
    Ok(Json(Cases { cases: detail.planned.into_iter().map(model::CaseEntry::from).collect() }))
}

async fn case(
    State(app): State<App>,
    Path((run, case)): Path<(String, String)>,
) -> Result<Json<CaseResult>, ApiFailure> {
    let detail = find_run(&app, &run).await?;
    let (_, key) = find_case(&detail, &case)?;
    let result = app.store.result(&run, &key).await?;
    Ok(Json(result.ok_or(Failure::NotFound("The case has no result yet."))?))
}

async fn targets(State(app): State<App>) -> Result<Json<Targets>, ApiFailure> {
    let targets = app.store.targets().await?;
    let targets = targets.into_iter().map(model::TargetEntry::from).collect();
    Ok::<_, StoreError>(Json(Targets { targets })).map_err(ApiFailure::from)
}
