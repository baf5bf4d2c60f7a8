//! One run.

use axum::extract::{Path, State};
use axum::response::Html;

use super::find_run;
use crate::app::{App, Failure};
use crate::view;

pub(super) async fn page(State(app): State<App>, Path(run): Path<String>) -> Result<Html<String>, Failure> {
    Ok(Html(view::run(&find_run(&app, &run).await?)?))
}
