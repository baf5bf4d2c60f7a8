//! Fails requests while the results store does not answer.

use axum::extract::{OriginalUri, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;

/// The middleware of each route that reads the store.
pub(super) async fn require_store(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    request: Request,
    next: Next,
) -> Response {
    match app.watch.while_available(next.run(request)).await {
        Ok(response) => response,
        Err(failure) => failure.answer(uri.path()),
    }
}
