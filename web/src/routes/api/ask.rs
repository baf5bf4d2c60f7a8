//! What a request says, read so that what is not understood is told as JSON.

use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::ApiFailure;
use crate::app::Failure;

fn unclear(what: impl std::fmt::Display) -> ApiFailure {
    ApiFailure(Failure::Unclear(what.to_string()))
}

/// Parts of the address.
pub(super) struct Address<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Address<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        // What is no text, or no number where one is meant, names nothing.
        match Path::from_request_parts(parts, state).await {
            Ok(Path(said)) => Ok(Address(said)),
            Err(_) => Err(ApiFailure(Failure::NotFound("There is no such resource."))),
        }
    }
}

/// What stands behind the `?`.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFailure> {
        Query::from_request_parts(parts, state).await.map(|Query(asked)| Asked(asked)).map_err(unclear)
    }
}

/// The document that was sent.
pub(super) struct Sent<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = ApiFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiFailure> {
        Json::from_request(request, state).await.map(|Json(sent)| Sent(sent)).map_err(unclear)
    }
}
