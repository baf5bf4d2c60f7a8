//! Two runs side by side.

use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;
use weft_suites::diff::Diff;
use weft_suites::model::RunInfo;

use super::ask::Query;
use crate::app::{App, Failure};
use crate::view;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    before: Option<String>,
    after: Option<String>,
}

pub(super) async fn page(State(app): State<App>, Query(asked): Query<Asked>) -> Result<Html<String>, Failure> {
    let (before, after, diff) = compared(&app, &asked).await?;
    Ok(Html(view::compare(&before, &after, &diff)?))
}

/// The two runs, and what is different between them.
pub(super) async fn compared(app: &App, asked: &Asked) -> Result<(RunInfo, RunInfo, Diff), Failure> {
    const NONE: Failure =
        Failure::NotFound("The address does not name two runs of the store: choose them in the list of runs.");
    let (before, after) = (asked.before.as_deref().ok_or(NONE)?, asked.after.as_deref().ok_or(NONE)?);
    let before = app.store.outcomes(before).await?.ok_or(NONE)?;
    let after = app.store.outcomes(after).await?.ok_or(NONE)?;
    let diff = Diff::of(&before, &after);
    Ok((before.run, after.run, diff))
}
