//! Extractors for the API: they report a malformed request as JSON.

use axum::extract::{FromRequest, FromRequestParts, Json, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::failure::ApiFailure;
use crate::failure::Failure;

/// Wraps an extractor of the pages, and reports its errors as JSON.
pub(super) struct Api<E>(pub(super) E);

impl<S: Send + Sync, E: FromRequestParts<S, Rejection = Failure>> FromRequestParts<S> for Api<E> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        E::from_request_parts(parts, state).await.map(Api).map_err(ApiFailure)
    }
}

/// Returns the maximum number of entries in a response: `limit`, or `default` if `limit` is `None`.
/// Returns an error if `limit` is 0 or greater than `most`.
pub(super) fn count(limit: Option<usize>, default: usize, most: usize) -> Result<usize, ApiFailure> {
    let count = limit.unwrap_or(default);
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    Err(ApiFailure(Failure::Invalid(format!("limit: expected a number from 1 to {most}"))))
}

/// The JSON document in the body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiFailure> {
        let sent = Json::from_request(request, state).await;
        sent.map(|Json(sent)| JsonBody(sent)).map_err(|error| ApiFailure(Failure::Invalid(error.to_string())))
    }
}
