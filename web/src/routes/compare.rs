//! Two runs side by side.

use axum::extract::{Query, State};
use axum::response::Html;
use serde::Deserialize;
use weft_suites::diff::Diff;

use crate::app::{App, Failure};
use crate::view;

#[derive(Deserialize)]
pub(super) struct Asked {
    before: Option<String>,
    after: Option<String>,
}

pub(super) async fn page(State(app): State<App>, Query(asked): Query<Asked>) -> Result<Html<String>, Failure> {
    const NONE: Failure = Failure::NotFound("Two runs of the store are compared: choose them in the list of runs.");
    let (before, after) = (asked.before.ok_or(NONE)?, asked.after.ok_or(NONE)?);
    let before = app.store.report(&before).await?.ok_or(NONE)?;
    let after = app.store.report(&after).await?.ok_or(NONE)?;
    Ok(Html(view::compare(&before.run, &after.run, &Diff::of(&before, &after))?))
}
