//! The API: the content of the pages as JSON. Where possible, the documents have the form of
//! `report.json`. A program that reads `report.json` can then also read the documents of the API.

mod captures;
mod control;
mod describe;
mod evaluations;
mod extract;
mod failure;
mod model;
mod openapi;

use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use weft_suites::model::CaseResult;
use weft_suites::store::RunsPage;

use super::extract::{Path, Query};
use super::find::{find_case, find_run};
use crate::app::App;
use crate::failure::Failure;
use crate::routes::runs::wanted_label;
use crate::routes::store_available::require_store;
use extract::Api;
use failure::ApiFailure;
use model::{Cases, Run, RunEntry, Runs, TargetEntry, Targets};

/// The default number of runs in a response.
const DEFAULT_RUNS: usize = 50;
/// The maximum number of runs in a response.
const MAX_RUNS: usize = 200;

pub(super) fn routes(app: &App) -> Router<App> {
    of_store(app)
        .merge(captures::routes())
        .route("/openapi.json", get(async || Json(describe::document())))
        .route("/runs/{run}/again", post(control::again))
        .route("/targets/{target}/runs", post(control::start))
        .route("/targets/{target}/jobs/{job}", delete(control::stop))
        .fallback(async || ApiFailure(Failure::NotFound("There is no such resource.")))
}

/// Resources that read the store.
fn of_store(app: &App) -> Router<App> {
    Router::new()
        .route("/runs", get(runs))
        .route("/runs/{run}", get(run).delete(control::delete))
        .route("/runs/{run}/cases", get(cases))
        .route("/runs/{run}/cases/{*case}", get(case))
        .route("/runs/{run}/sections", get(evaluations::sections))
        .route("/runs/{run}/export.zip", get(export))
        .route("/targets", get(targets))
        .route("/targets/{target}", get(evaluations::trend))
        .route("/targets/{target}/baseline", get(evaluations::baseline))
        .route("/compare", get(evaluations::compare))
        .route("/matrix", get(evaluations::matrix))
        .route("/pairs", get(evaluations::pairs))
        .route_layer(from_fn_with_state(app.clone(), require_store))
}

/// The query of the list of runs.
#[derive(Debug, Deserialize)]
struct RunsQuery {
    target: Option<String>,
    label: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
}

async fn runs(State(app): State<App>, Api(Query(query)): Api<Query<RunsQuery>>) -> Result<Json<Runs>, ApiFailure> {
    let limit = extract::count(query.limit, DEFAULT_RUNS, MAX_RUNS)?;
    let page = RunsPage {
        target: query.target.as_deref(),
        label: query.label.as_deref().map(wanted_label).transpose()?,
        before: query.before.as_deref(),
        limit: limit as u32 + 1,
    };
    let mut runs: Vec<RunEntry> = app.store.runs_of(page).await?.into_iter().map(RunEntry::from).collect();
    // The query reads one run more, to know whether there are older runs.
    let is_more = runs.len() > limit;
    runs.truncate(limit);
    let ids: Vec<&str> = runs.iter().map(|entry| entry.run.id.as_str()).collect();
    let mut scores = app.store.scores(&ids).await?;
    for entry in &mut runs {
        entry.score = scores.remove(&entry.run.id);
    }
    let older = runs.last().filter(|_| is_more).map(|last| last.run.id.clone());
    Ok(Json(Runs { runs, older }))
}

async fn run(State(app): State<App>, Api(Path(run)): Api<Path<String>>) -> Result<Json<Run>, ApiFailure> {
    let detail = find_run(&app, &run).await?;
    let score = app.store.scores(&[&run]).await?.remove(&run);
    Ok(Json(Run { entry: RunEntry { score, ..detail.record.into() }, cases: detail.cases }))
}

async fn cases(State(app): State<App>, Api(Path(run)): Api<Path<String>>) -> Result<Json<Cases>, ApiFailure> {
    let detail = find_run(&app, &run).await?;
    Ok(Json(Cases { cases: detail.planned.into_iter().map(model::CaseEntry::from).collect() }))
}

async fn case(
    State(app): State<App>,
    Api(Path((run, case))): Api<Path<(String, String)>>,
) -> Result<Json<CaseResult>, ApiFailure> {
    let detail = find_run(&app, &run).await?;
    let (_, key) = find_case(&detail, &case)?;
    let result = app.store.result(&run, &key).await?;
    Ok(Json(result.ok_or(Failure::NotFound("The case has no result yet."))?))
}

async fn export(state: State<App>, Api(Path(run)): Api<Path<String>>) -> Result<Response, ApiFailure> {
    Ok(super::export::zip(state, Path(run)).await?)
}

async fn targets(State(app): State<App>) -> Result<Json<Targets>, ApiFailure> {
    let mut stored: Vec<TargetEntry> = app.store.targets().await?.into_iter().map(TargetEntry::from).collect();
    let now_ms = app.clock.now_ms();
    let own = app.starter.states().map(|(target, state)| {
        let known = stored.iter().find(|entry| entry.name == target.name());
        TargetEntry {
            name: target.name().to_owned(),
            runs: known.map_or(0, |known| known.runs),
            last: known.and_then(|known| known.last.clone()),
            control: Some(state),
            next_unix_ms: app.schedule.next_ms(target.name(), now_ms),
        }
    });
    let mut targets: Vec<TargetEntry> = own.collect();
    stored.retain(|entry| !targets.iter().any(|own| own.name == entry.name));
    targets.append(&mut stored);
    Ok(Json(Targets { targets }))
}
