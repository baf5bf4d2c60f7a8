//! What a request says, read so that what is not understood is told as JSON.

use axum::extract::{FromRequest, FromRequestParts, Json, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::ApiFailure;
use crate::app::Failure;
use crate::routes::ask::{Path, Query};

/// Parts of the address.
pub(super) struct Address<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Address<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        Path::from_request_parts(parts, state).await.map(|Path(said)| Address(said)).map_err(ApiFailure)
    }
}

/// What stands behind the `?`.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        Query::from_request_parts(parts, state).await.map(|Query(asked)| Asked(asked)).map_err(ApiFailure)
    }
}

/// How many entries an answer has: as many as were asked for, else `unasked`.
pub(super) fn count(asked: Option<usize>, unasked: usize, most: usize) -> Result<usize, ApiFailure> {
    let count = asked.unwrap_or(unasked);
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    Err(ApiFailure(Failure::Unclear(format!("limit: expected a number from 1 to {most}"))))
}

/// The document that was sent.
pub(super) struct Sent<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = ApiFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiFailure> {
        let sent = Json::from_request(request, state).await;
        sent.map(|Json(sent)| Sent(sent)).map_err(|error| ApiFailure(Failure::Unclear(error.to_string())))
    }
}
