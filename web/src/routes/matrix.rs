//! The matrix: a page with the verdicts of all cases for all targets.

use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::extract::Query;
use crate::app::App;
use crate::failure::Failure;
use crate::view::{self, Column, Filter, Show};

/// The maximum number of targets on the page.
const MAX_TARGETS: usize = 16;

#[derive(Debug, Deserialize)]
pub(super) struct MatrixQuery {
    #[serde(default)]
    pub(super) target: String,
    #[serde(default)]
    case: String,
    #[serde(default)]
    show: Show,
}

impl MatrixQuery {
    pub(super) fn filter(&self) -> Filter<'_> {
        Filter { target: &self.target, case: &self.case, show: self.show }
    }
}

pub(super) async fn page(State(app): State<App>, Query(query): Query<MatrixQuery>) -> Result<Html<String>, Failure> {
    let (columns, left_out) = columns(&app, &query.target).await?;
    Ok(Html(view::matrix(&columns, left_out, &query.filter())?))
}

/// Returns the first [`MAX_TARGETS`] targets whose name contains `target`, and the number of
/// further targets that match.
pub(super) async fn columns(app: &App, target: &str) -> Result<(Vec<Column>, usize), Failure> {
    let mut targets = app.store.targets().await?;
    targets.retain(|known| known.name.contains(target));
    let left_out = targets.len().saturating_sub(MAX_TARGETS);
    let mut columns = Vec::new();
    for target in targets.into_iter().take(MAX_TARGETS) {
        // Another process can delete a run meanwhile.
        if let Some(latest) = app.store.latest_of(&target).await? {
            let planned = app.store.latest_cases(&latest).await?;
            columns.push(Column { latest, planned });
        }
    }
    Ok((columns, left_out))
}
