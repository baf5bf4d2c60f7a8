//! The home page: the targets that are not as expected, the changes since yesterday, and the runs
//! in progress.

use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use weft_suites::store::Latest;

use super::pairs;
use crate::app::App;
use crate::failure::Failure;
use crate::view::{self, ComparedTarget, HomePage};

/// A day, in milliseconds.
const DAY: u64 = 86_400_000;
/// The maximum number of runs in progress on the page.
const MAX_ACTIVE: u32 = 32;
/// The parameters of the list of runs, which was at this address in weft 0.1.
const OF_RUNS: [&str; 3] = ["target=", "label=", "before="];

pub(super) async fn page(State(app): State<App>, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let is_of_runs = |query: &String| query.split('&').any(|part| OF_RUNS.iter().any(|name| part.starts_with(name)));
    if let Some(query) = query.filter(is_of_runs) {
        return Ok(Redirect::to(&format!("/runs?{query}")).into_response());
    }
    let now_ms = app.clock.now_ms();
    let (newest, left_out) = pairs::newest(&app, &app.store.targets().await?).await?;
    let recent: Vec<&Latest> = newest.iter().filter(|latest| is_recent(latest, now_ms)).collect();
    let mut compared = Vec::new();
    for latest in recent {
        compared.push(compare(&app, latest, now_ms).await?);
    }
    let active = app.store.active(MAX_ACTIVE).await?;
    let configured: Vec<_> = app.starter.states().collect();
    let shown =
        HomePage { now_ms, newest: &newest, left_out, compared: &compared, active: &active, configured: &configured };
    Ok(Html(view::home(&shown)?).into_response())
}

/// Returns whether the run that represents a target is finished and started in the last 24 hours.
fn is_recent(latest: &Latest, now_ms: u64) -> bool {
    latest.record.summary.is_some() && latest.record.info.started_unix_ms > now_ms.saturating_sub(DAY)
}

/// Compares a target with its last run that is more than a day old, or with its previous run.
async fn compare<'a>(app: &App, latest: &'a Latest, now_ms: u64) -> Result<ComparedTarget<'a>, Failure> {
    let before = app.store.earlier(latest, now_ms.saturating_sub(DAY)).await?;
    let changes = match &before {
        Some(before) => app.store.changes(&before.info.id, latest).await?,
        None => Vec::new(),
    };
    Ok(ComparedTarget { latest, before, changes })
}
