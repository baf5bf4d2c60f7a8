//! The list of runs.

use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;
use weft_suites::store::RunsPage;

use super::ask::Query;
use crate::app::App;
use crate::failure::Failure;
use crate::view;

/// Runs on a page.
const MOST: u32 = 50;

#[derive(Deserialize)]
pub(super) struct Wanted {
    target: Option<String>,
    before: Option<String>,
}

pub(super) async fn page(State(app): State<App>, Query(wanted): Query<Wanted>) -> Result<Html<String>, Failure> {
    // A form also sends empty fields.
    let target = wanted.target.as_deref().filter(|target| !target.is_empty());
    let before = wanted.before.as_deref().filter(|before| !before.is_empty());
    // One more, to know whether there are older runs.
    let mut records = app.store.runs_of(RunsPage { target, before, limit: MOST + 1 }).await?;
    let is_more = records.len() > MOST as usize;
    records.truncate(MOST as usize);
    let targets = app.store.targets().await?;
    let ids: Vec<&str> = records.iter().map(|record| record.info.id.as_str()).collect();
    let scores = app.store.scores(&ids).await?;
    Ok(Html(view::runs(&records, &scores, &targets, view::Shown { target, before, is_more })?))
}
