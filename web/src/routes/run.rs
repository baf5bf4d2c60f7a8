//! The page of one run.

use axum::extract::{Extension, State};
use axum::response::Html;
use serde::Deserialize;

use super::extract::{Path, Query};
use super::find::find_run;
use crate::access::Session;
use crate::app::App;
use crate::failure::Failure;
use crate::view::{self, OperatorForms, RunPage};

/// The query of the page of a run.
#[derive(Deserialize)]
pub(super) struct RunQuery {
    /// Index of the first case in the list of cases.
    #[serde(default)]
    from: usize,
}

pub(super) async fn page(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<RunQuery>,
    session: Option<Extension<Session>>,
) -> Result<Html<String>, Failure> {
    let detail = find_run(&app, &run).await?;
    let score = app.store.scores(&[&run]).await?.remove(&run);
    let target = &detail.record.info.target.name;
    let is_startable = app.starter.state(target).is_some();
    // A run in progress has no causes yet.
    let results = match detail.record.summary {
        Some(_) => app.store.not_passed(&run).await?,
        None => Vec::new(),
    };
    let operator = OperatorForms::of(session.as_deref());
    let page = RunPage {
        detail: &detail,
        results: &results,
        score,
        live_state: app.live.live_state(&run),
        job: app.starter.job_of(target, &run),
        forms: operator.filter(|_| is_startable),
        operator,
        from: query.from,
    };
    Ok(Html(view::run(page)?))
}
