//! The error type of all routes, with its HTTP status and message.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use weft_suites::store::StoreError;

use crate::access::{MAX_FORM, TokenRejection};
use crate::captures::upload::UploadError;
use crate::starter::JobError;
use crate::view;

/// Why a request fails. The text is the message for the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The requested page or object does not exist. The field is the message.
    #[error("{0}")]
    NotFound(&'static str),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store does not answer. [`StoreWatch`](crate::store_watch::StoreWatch) logs the failure.
    #[error("The results store does not answer. Try again in a moment.")]
    NoStore,
    /// A template could not be rendered.
    #[error(transparent)]
    Page(#[from] askama::Error),
    /// A file of evidence cannot be read.
    #[error("The file cannot be read: {0}")]
    File(std::io::Error),
    /// The results of a run are deleted, but not all of its files.
    #[error("The results of the run are deleted, but not all of its files: {0}")]
    Files(std::io::Error),
    /// The state of an object does not allow the action. The field is the message.
    #[error("{0}")]
    Conflict(&'static str),
    /// The client is not allowed to send this request. The field is the message.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The token is rejected.
    #[error(transparent)]
    Token(TokenRejection),
    /// The body of a form did not arrive in time.
    #[error("The form did not arrive in time.")]
    TooSlow,
    /// A form or document is longer than [`MAX_FORM`].
    #[error("The form or document is longer than {} KiB.", MAX_FORM >> 10)]
    TooLong,
    /// The system returned no random bytes.
    #[error("The system returned no random bytes: {0}")]
    Random(getrandom::Error),
    /// The requested capture is still being read. The field is the number of packets so far.
    #[error("The capture is being read: {0} packets so far.")]
    Reading(u64),
    /// A limit on concurrent work is reached. The field is the message, which names the limit.
    #[error("{0}")]
    Busy(&'static str),
    /// A capture cannot be read. The field is the reason.
    #[error("The capture cannot be read: {0}.")]
    Unreadable(Arc<str>),
    /// An upload is rejected.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// A run cannot be started or stopped.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A form, query or document cannot be parsed. The field is the message.
    #[error("{0}")]
    Invalid(String),
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Failure::NotFound(_)
            | Failure::Upload(UploadError::NoFolder)
            | Failure::Job(JobError::UnknownTarget | JobError::EmptySelection(_)) => StatusCode::NOT_FOUND,
            Failure::Store(error) if !error.is_transient() => StatusCode::INTERNAL_SERVER_ERROR,
            Failure::Store(_)
            | Failure::NoStore
            | Failure::Reading(_)
            | Failure::Busy(_)
            | Failure::Upload(UploadError::Busy) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Page(_)
            | Failure::File(_)
            | Failure::Files(_)
            | Failure::Random(_)
            | Failure::Upload(UploadError::Disk(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            Failure::Forbidden(_) => StatusCode::FORBIDDEN,
            Failure::Token(TokenRejection::TooMany(_)) => StatusCode::TOO_MANY_REQUESTS,
            Failure::Token(TokenRejection::Wrong | TokenRejection::Missing) => StatusCode::UNAUTHORIZED,
            Failure::TooSlow | Failure::Upload(UploadError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
            Failure::TooLong | Failure::Upload(UploadError::TooLong(_)) => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::Invalid(_)
            | Failure::Upload(UploadError::CutOff(_))
            | Failure::Job(JobError::InvalidSelection(_)) => StatusCode::BAD_REQUEST,
            Failure::Job(_) | Failure::Conflict(_) | Failure::Upload(UploadError::Namesakes) => StatusCode::CONFLICT,
            Failure::Unreadable(_) | Failure::Upload(UploadError::NoCapture(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    /// Returns the HTTP status and the message for the client. Logs errors of the server and of the
    /// results store.
    pub(crate) fn report(self) -> (StatusCode, String) {
        let status = self.status();
        let message = match self {
            Failure::Store(error) if error.is_transient() => {
                tracing::error!("{error}");
                Failure::NoStore.to_string()
            }
            failure => failure.to_string(),
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!("{message}");
        }
        (status, message)
    }

    /// Returns the `Retry-After` or `WWW-Authenticate` header of the response. Returns `None` if
    /// the failure needs neither header.
    fn header(&self) -> Option<[(HeaderName, String); 1]> {
        match self {
            Failure::Token(TokenRejection::TooMany(seconds)) => Some([(header::RETRY_AFTER, seconds.to_string())]),
            Failure::NoStore => Some([(header::RETRY_AFTER, "2".to_owned())]),
            Failure::Store(error) if error.is_transient() => Some([(header::RETRY_AFTER, "2".to_owned())]),
            Failure::Reading(_) | Failure::Busy(_) => Some([(header::RETRY_AFTER, "1".to_owned())]),
            Failure::Token(TokenRejection::Wrong | TokenRejection::Missing) => {
                Some([(header::WWW_AUTHENTICATE, "Bearer realm=\"weft\"".to_owned())])
            }
            _ => None,
        }
    }

    /// Makes the JSON response of the API.
    pub(crate) fn into_json(self) -> Response {
        let header = self.header();
        let (status, error) = self.report();
        (status, header, Json(Problem { error })).into_response()
    }

    /// Makes a JSON response if `path` is a path of the API, otherwise an HTML page.
    pub(crate) fn answer(self, path: &str) -> Response {
        if path.starts_with("/api/") { self.into_json() } else { self.into_response() }
    }
}

/// The document of a failed request.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// The error message, as text for the user.
    pub(crate) error: String,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let header = self.header();
        let reading = if let Failure::Reading(frames) = self { Some(frames) } else { None };
        let (status, message) = self.report();
        let page = reading.map_or_else(|| view::error(status, &message), view::captures::reading);
        match page {
            Ok(page) => (status, header, axum::response::Html(page)).into_response(),
            Err(_) => (status, header, message).into_response(),
        }
    }
}
