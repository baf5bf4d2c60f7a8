//! Initiators against responders.

use axum::extract::State;
use axum::response::Html;
use weft_suites::store::Latest;

use crate::app::App;
use crate::failure::Failure;
use crate::view;

/// The maximum number of targets on the page.
const MOST: usize = 64;

pub(super) async fn page(State(app): State<App>) -> Result<Html<String>, Failure> {
    Ok(Html(view::pairs(&newest(&app).await?)?))
}

/// The run that represents each target.
pub(super) async fn newest(app: &App) -> Result<Vec<Latest>, Failure> {
    let mut newest = Vec::new();
    for target in app.store.targets().await?.into_iter().take(MOST) {
        // A run may have been deleted meanwhile.
        newest.extend(app.store.latest(&target.name).await?);
    }
    Ok(newest)
}
