//! The page with the results by initiator and responder.

use axum::extract::State;
use axum::response::Html;
use weft_suites::store::{Latest, TargetRecord};

use crate::app::App;
use crate::failure::Failure;
use crate::view;

/// The maximum number of targets on the page.
const MAX_TARGETS: usize = 64;

pub(super) async fn page(State(app): State<App>) -> Result<Html<String>, Failure> {
    let (newest, left_out) = newest(&app, &app.store.targets().await?).await?;
    Ok(Html(view::pairs(&newest, left_out)?))
}

/// Returns the run that represents each of `targets`, for at most [`MAX_TARGETS`] targets, and the
/// number of further targets.
pub(super) async fn newest(app: &App, targets: &[TargetRecord]) -> Result<(Vec<Latest>, usize), Failure> {
    let left_out = targets.len().saturating_sub(MAX_TARGETS);
    let mut newest = Vec::new();
    for target in targets.iter().take(MAX_TARGETS) {
        // Another process can delete a run meanwhile.
        newest.extend(app.store.latest_of(target).await?);
    }
    Ok((newest, left_out))
}
