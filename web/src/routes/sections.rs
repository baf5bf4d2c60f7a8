//! The page with the requirements of a run by sections of the specifications.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Html;
use weft_core::RequirementId;
use weft_suites::model::Verdict;
use weft_suites::store::RunRecord;

use super::extract::Path;
use super::find::find_record;
use crate::app::App;
use crate::failure::Failure;
use crate::view;

pub(super) async fn page(State(app): State<App>, Path(run): Path<String>) -> Result<Html<String>, Failure> {
    let (record, judged) = judged(&app, &run).await?;
    Ok(Html(view::sections(&record.info, &judged)?))
}

/// Returns a run, and the worst verdict of each requirement in the run.
pub(super) async fn judged(app: &App, run: &str) -> Result<(RunRecord, BTreeMap<RequirementId, Verdict>), Failure> {
    let record = find_record(app, run).await?;
    Ok((record, app.store.judged(run).await?))
}
