//! The error type of the routes of the API.

use axum::response::{IntoResponse, Response};

use crate::failure::Failure;

/// A failure that is reported as JSON.
pub(super) struct ApiFailure(pub(super) Failure);

impl<T: Into<Failure>> From<T> for ApiFailure {
    fn from(failure: T) -> Self {
        ApiFailure(failure.into())
    }
}

impl IntoResponse for ApiFailure {
    fn into_response(self) -> Response {
        self.0.into_json()
    }
}
