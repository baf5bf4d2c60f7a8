//! The page with the list of runs.

use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;
use weft_suites::store::RunsPage;

use super::extract::Query;
use crate::app::App;
use crate::failure::Failure;
use crate::view;

/// The maximum number of runs on a page.
const MAX_RUNS: u32 = 50;

#[derive(Deserialize)]
pub(super) struct RunsQuery {
    target: Option<String>,
    label: Option<String>,
    before: Option<String>,
}

pub(super) async fn page(State(app): State<App>, Query(query): Query<RunsQuery>) -> Result<Html<String>, Failure> {
    // A form also sends empty fields.
    let target = query.target.as_deref().filter(|target| !target.is_empty());
    let before = query.before.as_deref().filter(|before| !before.is_empty());
    let label = query.label.as_deref().filter(|label| !label.is_empty());
    let page = RunsPage { target, label: label.map(wanted_label).transpose()?, before, limit: MAX_RUNS + 1 };
    // Read one run more, to know whether there are older runs.
    let mut records = app.store.runs_of(page).await?;
    let is_more = records.len() > MAX_RUNS as usize;
    records.truncate(MAX_RUNS as usize);
    let targets = app.store.targets().await?;
    let ids: Vec<&str> = records.iter().map(|record| record.info.id.as_str()).collect();
    let scores = app.store.scores(&ids).await?;
    Ok(Html(view::runs(&records, &scores, &targets, view::RunsPart { target, label, before, is_more })?))
}

/// Returns the name and the value of a label, `KEY=VALUE`.
pub(super) fn wanted_label(label: &str) -> Result<(&str, &str), Failure> {
    label.split_once('=').ok_or_else(|| Failure::Invalid("label: expected KEY=VALUE".to_owned()))
}
