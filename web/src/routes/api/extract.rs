//! Extractors for the API: they report a malformed request as JSON.

use axum::extract::{FromRequest, FromRequestParts, Json, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::failure::ApiFailure;
use crate::failure::Failure;
use crate::routes::extract::{Path, Query};

/// The parameters in the path.
pub(super) struct PathParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        Path::from_request_parts(parts, state).await.map(|Path(parts)| PathParams(parts)).map_err(ApiFailure)
    }
}

/// The query string.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        Query::from_request_parts(parts, state).await.map(|Query(query)| QueryParams(query)).map_err(ApiFailure)
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
