//! What a request says: axum's extractors, whose refusals are pages like all others.

use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::app::Failure;

/// Parts of the address.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        // What is no text, or no number where one is meant, names nothing.
        match extract::Path::from_request_parts(parts, state).await {
            Ok(extract::Path(said)) => Ok(Path(said)),
            Err(_) => Err(Failure::NotFound("There is nothing at this address.")),
        }
    }
}

/// What stands behind the `?`.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let asked = extract::Query::from_request_parts(parts, state).await;
        asked.map(|extract::Query(asked)| Query(asked)).map_err(|error| Failure::Unclear(error.to_string()))
    }
}

/// A form that was sent.
pub(super) struct Form<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Form<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let sent = extract::Form::from_request(request, state).await;
        sent.map(|extract::Form(sent)| Form(sent)).map_err(|error| Failure::Unclear(error.to_string()))
    }
}
