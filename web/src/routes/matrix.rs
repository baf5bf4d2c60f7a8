//! Targets against cases.

use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::ask::Query;
use crate::app::{App, Failure};
use crate::view::{self, Column, Filter, Show};

/// Targets on the page.
const MOST: usize = 16;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    pub(super) target: String,
    #[serde(default)]
    case: String,
    #[serde(default)]
    show: Show,
}

impl Asked {
    pub(super) fn filter(&self) -> Filter<'_> {
        Filter { target: &self.target, case: &self.case, show: self.show }
    }
}

pub(super) async fn page(State(app): State<App>, Query(asked): Query<Asked>) -> Result<Html<String>, Failure> {
    let (columns, left_out) = columns(&app, &asked.target).await?;
    Ok(Html(view::matrix(&columns, left_out, &asked.filter())?))
}

/// The targets whose name has that part, as far as there is room, and how many there was none for.
pub(super) async fn columns(app: &App, target: &str) -> Result<(Vec<Column>, usize), Failure> {
    let mut targets = app.store.targets().await?;
    targets.retain(|known| known.name.contains(target));
    let left_out = targets.len().saturating_sub(MOST);
    let mut columns = Vec::new();
    for target in targets.into_iter().take(MOST) {
        // A run that was deleted in between has no column.
        if let Some(latest) = app.store.latest(&target.name).await? {
            let planned = app.store.latest_cases(&latest).await?;
            columns.push(Column { latest, planned });
        }
    }
    Ok((columns, left_out))
}
