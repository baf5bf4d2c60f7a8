//! The error type of all routes, with its HTTP status and message.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use weft_suites::store::StoreError;

use crate::access::{MAX_FORM, TokenRejection};
use crate::captures::upload;
use crate::starter::JobError;
use crate::view;

const NO_STORE: &str = "The results store does not answer. Try again in a moment.";

/// Why a request fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The requested page or object does not exist. The field is the message.
    NotFound(&'static str),
    /// The store cannot be read.
    Store(StoreError),
    /// The store does not answer. [`StoreWatch`](crate::store_watch::StoreWatch) logs the failure.
    NoStore,
    /// A template could not be rendered.
    Page(askama::Error),
    /// A file of evidence cannot be read.
    File(std::io::Error),
    /// The client may not send this request. The field is the message.
    Forbidden(&'static str),
    /// The token is rejected.
    Token(TokenRejection),
    /// The body of a form did not arrive in time.
    TooSlow,
    /// A form or document is longer than [`MAX_FORM`].
    TooLong,
    /// The system returned no random bytes.
    Random(getrandom::Error),
    /// The requested capture is still being read. The field is the number of packets so far.
    Reading(u64),
    /// A limit on concurrent work is reached. The field is the message, which names the limit.
    Busy(&'static str),
    /// A capture cannot be read. The field is the reason.
    Unreadable(Arc<str>),
    /// An upload is rejected.
    Upload(upload::UploadError),
    /// A run cannot be started or stopped.
    Job(JobError),
    /// A form, query or document cannot be parsed. The field is the message.
    Invalid(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl From<JobError> for Failure {
    fn from(why: JobError) -> Self {
        Failure::Job(why)
    }
}

impl From<askama::Error> for Failure {
    fn from(error: askama::Error) -> Self {
        Failure::Page(error)
    }
}

impl Failure {
    /// Returns the HTTP status and the message for the client. Logs errors of the server and of the
    /// results store.
    pub(crate) fn report(self) -> (StatusCode, String) {
        let (status, message) = match self {
            Failure::NotFound(what) => (StatusCode::NOT_FOUND, what.to_owned()),
            Failure::Store(error) if error.is_transient() => {
                tracing::error!("{error}");
                (StatusCode::SERVICE_UNAVAILABLE, NO_STORE.to_owned())
            }
            Failure::Store(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::NoStore => (StatusCode::SERVICE_UNAVAILABLE, NO_STORE.to_owned()),
            Failure::Page(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::Forbidden(why) => (StatusCode::FORBIDDEN, why.to_owned()),
            Failure::Token(TokenRejection::Wrong) => (StatusCode::UNAUTHORIZED, "The token is not valid.".to_owned()),
            Failure::Token(TokenRejection::Missing) => (
                StatusCode::UNAUTHORIZED,
                "A token is required: sign in at /login, or send Authorization: Bearer TOKEN.".to_owned(),
            ),
            Failure::Token(TokenRejection::TooMany(seconds)) => (
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "The token is not valid, and too many wrong tokens came from this address. \
                     Try again in {seconds} s."
                ),
            ),
            Failure::TooSlow => (StatusCode::REQUEST_TIMEOUT, "The form did not arrive in time.".to_owned()),
            Failure::TooLong => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("The form or document is longer than {} KiB.", MAX_FORM >> 10))
            }
            Failure::Invalid(why) => (StatusCode::BAD_REQUEST, why),
            Failure::Job(why) => {
                let status = match why {
                    JobError::UnknownTarget | JobError::EmptySelection(_) => StatusCode::NOT_FOUND,
                    JobError::QueueFull
                    | JobError::AlreadyOver
                    | JobError::NothingToResume
                    | JobError::ResumeKeepsPlan => StatusCode::CONFLICT,
                    JobError::InvalidSelection(_) => StatusCode::BAD_REQUEST,
                };
                (status, why.to_string())
            }
            Failure::Random(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("The system returned no random bytes: {error}"))
            }
            Failure::Reading(frames) => {
                (StatusCode::SERVICE_UNAVAILABLE, format!("The capture is being read: {frames} packets so far."))
            }
            Failure::Busy(what) => (StatusCode::SERVICE_UNAVAILABLE, what.to_owned()),
            Failure::Unreadable(why) => {
                (StatusCode::UNPROCESSABLE_ENTITY, format!("The capture cannot be read: {why}."))
            }
            Failure::Upload(refused) => (status_of(&refused), refused.to_string()),
            Failure::File(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("The file cannot be read: {error}")),
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!("{message}");
        }
        (status, message)
    }
}

impl Failure {
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
    /// The error message, for people.
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

fn status_of(refused: &upload::UploadError) -> StatusCode {
    match refused {
        upload::UploadError::NoFolder => StatusCode::NOT_FOUND,
        upload::UploadError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        upload::UploadError::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        upload::UploadError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        upload::UploadError::CutOff(_) => StatusCode::BAD_REQUEST,
        upload::UploadError::NoCapture(_) => StatusCode::UNPROCESSABLE_ENTITY,
        upload::UploadError::Namesakes => StatusCode::CONFLICT,
        upload::UploadError::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
