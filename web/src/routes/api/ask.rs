//! Extractors for the API: they report a malformed request as JSON.

use axum::extract::{FromRequest, FromRequestParts, Json, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::failure::ApiFailure;
use crate::failure::Failure;
use crate::routes::ask::{Path, Query};

/// The parameters in the path.
pub(super) struct Address<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Address<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        Path::from_request_parts(parts, state).await.map(|Path(parts)| Address(parts)).map_err(ApiFailure)
    }
}

/// The query string.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        Query::from_request_parts(parts, state).await.map(|Query(query)| Params(query)).map_err(ApiFailure)
    }
}

/// The number of entries in an answer: `limit`, which may be at most `most`.
pub(super) fn count(limit: Option<usize>, default: usize, most: usize) -> Result<usize, ApiFailure> {
    let count = limit.unwrap_or(default);
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    Err(ApiFailure(Failure::Unclear(format!("limit: expected a number from 1 to {most}"))))
}

/// The JSON document in the body.
pub(super) struct Sent<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = ApiFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiFailure> {
        let sent = Json::from_request(request, state).await;
        sent.map(|Json(sent)| Sent(sent)).map_err(|error| ApiFailure(Failure::Unclear(error.to_string())))
    }
}
