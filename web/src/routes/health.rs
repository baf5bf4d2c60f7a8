//! The health check, which reports whether the results store answers.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;

pub(super) async fn check(State(app): State<App>) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    match app.watch.is_available().await {
        true => (json, "{\"status\":\"ok\"}\n").into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, json, "{\"status\":\"store\"}\n").into_response(),
    }
}
