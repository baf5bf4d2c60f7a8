//! What every route can use, and how a route fails.

use std::path::PathBuf;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;
use weft_suites::store::{Store, StoreError};

use crate::live::Hub;
use crate::view;

/// Shared by all requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) store: Store,
    /// Evidence paths are relative to it.
    pub(crate) folder: PathBuf,
    pub(crate) hub: Hub,
    /// Becomes `true` when the server goes down.
    pub(crate) stopped: watch::Receiver<bool>,
}

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no such thing; what, in words.
    NotFound(&'static str),
    /// The store cannot be read.
    Store(StoreError),
    /// A page could not be made.
    Page(askama::Error),
    /// A file of evidence cannot be read.
    File(std::io::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl From<askama::Error> for Failure {
    fn from(error: askama::Error) -> Self {
        Failure::Page(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, words) = match self {
            Failure::NotFound(what) => (StatusCode::NOT_FOUND, what.to_owned()),
            Failure::Store(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::Page(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::File(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("the file cannot be read: {error}")),
        };
        if status.is_server_error() {
            tracing::error!("{words}");
        }
        match view::error(status, &words) {
            Ok(page) => (status, axum::response::Html(page)).into_response(),
            Err(_) => (status, words).into_response(),
        }
    }
}
