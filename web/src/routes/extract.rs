//! Extractors for the pages: they report a malformed request as a page.

use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The parameters in the path.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        // An error means that a part of the path is not UTF-8, or is not a number although a number
        // is expected. No page has such a path.
        match extract::Path::from_request_parts(parts, state).await {
            Ok(extract::Path(parts)) => Ok(Path(parts)),
            Err(_) => Err(Failure::NotFound("There is nothing at this address.")),
        }
    }
}

/// The query string.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = extract::Query::from_request_parts(parts, state).await;
        query.map(|extract::Query(query)| Query(query)).map_err(|error| Failure::Invalid(error.to_string()))
    }
}

/// A form in the body.
pub(super) struct Form<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Form<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let sent = extract::Form::from_request(request, state).await;
        sent.map(|extract::Form(sent)| Form(sent)).map_err(|error| Failure::Invalid(error.to_string()))
    }
}
