//! The list of runs.

use axum::extract::State;
use axum::response::Html;

use crate::app::{App, Failure};
use crate::view;

/// Runs on the page.
const MOST: u32 = 200;

pub(super) async fn page(State(app): State<App>) -> Result<Html<String>, Failure> {
    Ok(Html(view::runs(&app.store.runs(MOST).await?)?))
}
