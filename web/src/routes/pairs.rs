//! Initiators against responders.

use axum::extract::State;
use axum::response::Html;
use weft_suites::model::Score;
use weft_suites::store::RunRecord;

use crate::app::{App, Failure};
use crate::view;

/// Targets on the page.
const MOST: usize = 64;

pub(super) async fn page(State(app): State<App>) -> Result<Html<String>, Failure> {
    Ok(Html(view::pairs(&newest(&app).await?)?))
}

/// For each target the newest run that came to its end, or where none did, the newest; with what it says of requirements.
pub(super) async fn newest(app: &App) -> Result<Vec<(RunRecord, Score)>, Failure> {
    let mut records = Vec::new();
    for target in app.store.targets().await?.into_iter().take(MOST) {
        // A run that was deleted in between has no place.
        records.extend(app.store.record(&target.last).await?);
    }
    let ids: Vec<&str> = records.iter().map(|record| record.info.id.as_str()).collect();
    let mut scores = app.store.scores(&ids).await?;
    let of = |record: RunRecord| {
        let score = scores.remove(&record.info.id).unwrap_or_default();
        (record, score)
    };
    Ok(records.into_iter().map(of).collect())
}
