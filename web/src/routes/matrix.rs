//! Targets against cases.

use axum::extract::{Query, State};
use axum::response::Html;
use serde::Deserialize;

use crate::app::{App, Failure};
use crate::view::{self, Column, Filter, Show};

/// Targets on the page.
const MOST: usize = 16;

#[derive(Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    target: String,
    #[serde(default)]
    case: String,
    #[serde(default)]
    show: Show,
}

pub(super) async fn page(State(app): State<App>, Query(asked): Query<Asked>) -> Result<Html<String>, Failure> {
    let mut targets = app.store.targets().await?;
    targets.retain(|target| target.name.contains(&asked.target));
    let left_out = targets.len().saturating_sub(MOST);
    let mut columns = Vec::new();
    for target in targets.into_iter().take(MOST) {
        // A run that was deleted in between has no column.
        if let Some(record) = app.store.record(&target.last).await? {
            columns.push(Column { record, planned: app.store.planned(&target.last).await? });
        }
    }
    let filter = Filter { target: &asked.target, case: &asked.case, show: asked.show };
    Ok(Html(view::matrix(&columns, left_out, &filter)?))
}
