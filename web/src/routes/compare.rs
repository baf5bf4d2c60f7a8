//! The page with the differences between two runs.

use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;
use weft_suites::diff::Diff;
use weft_suites::model::RunInfo;

use super::extract::Query;
use crate::app::App;
use crate::failure::Failure;
use crate::view;

#[derive(Debug, Deserialize)]
pub(super) struct Runs {
    before: Option<String>,
    after: Option<String>,
}

pub(super) async fn page(State(app): State<App>, Query(runs): Query<Runs>) -> Result<Html<String>, Failure> {
    let (before, after, diff) = compared(&app, &runs).await?;
    Ok(Html(view::compare(&before, &after, &diff)?))
}

/// Returns the two runs and their differences.
pub(super) async fn compared(app: &App, runs: &Runs) -> Result<(RunInfo, RunInfo, Diff), Failure> {
    const NONE: Failure =
        Failure::NotFound("The address must name two runs of the store. Choose two runs in the list of runs.");
    let (before, after) = (runs.before.as_deref().ok_or(NONE)?, runs.after.as_deref().ok_or(NONE)?);
    let before = app.store.outcomes(before).await?.ok_or(NONE)?;
    let after = app.store.outcomes(after).await?.ok_or(NONE)?;
    let diff = Diff::of(&before, &after);
    Ok((before.run, after.run, diff))
}
