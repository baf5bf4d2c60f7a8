//! How a route fails.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use weft_suites::store::StoreError;

use crate::access::{FORM, Refused};
use crate::captures::upload;
use crate::starter::NotTaken;
use crate::view;

const NO_STORE: &str = "The results store does not answer. Try again in a moment.";

/// Why a request fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The requested thing does not exist; the message names it.
    NotFound(&'static str),
    /// The store cannot be read.
    Store(StoreError),
    /// The store does not answer. [`StoreWatch`](crate::store_watch::StoreWatch) logs that.
    NoStore,
    /// A page could not be made.
    Page(askama::Error),
    /// A file of evidence cannot be read.
    File(std::io::Error),
    /// The client may not do this; the message has the reason.
    Forbidden(&'static str),
    /// The token is rejected.
    Token(Refused),
    /// A form did not arrive in time.
    TooSlow,
    /// A form or document is longer than [`FORM`].
    TooLong,
    /// The system has no random bytes.
    Random(getrandom::Error),
    /// A capture is being read; the number of packets so far.
    Reading(u64),
    /// A limit on concurrent work is reached; the message names it.
    Busy(&'static str),
    /// A capture cannot be read; the reason.
    Unreadable(Arc<str>),
    /// An upload is rejected.
    Upload(upload::Refused),
    /// A run is not started.
    NotTaken(NotTaken),
    /// A form or document cannot be parsed; the message has the reason.
    Unclear(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl From<NotTaken> for Failure {
    fn from(why: NotTaken) -> Self {
        Failure::NotTaken(why)
    }
}

impl From<askama::Error> for Failure {
    fn from(error: askama::Error) -> Self {
        Failure::Page(error)
    }
}

impl Failure {
    /// The status and the message. Logs faults of the server.
    pub(crate) fn report(self) -> (StatusCode, String) {
        let (status, words) = match self {
            Failure::NotFound(what) => (StatusCode::NOT_FOUND, what.to_owned()),
            Failure::Store(error) if error.is_transient() => {
                tracing::error!("{error}");
                (StatusCode::SERVICE_UNAVAILABLE, NO_STORE.to_owned())
            }
            Failure::Store(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::NoStore => (StatusCode::SERVICE_UNAVAILABLE, NO_STORE.to_owned()),
            Failure::Page(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::Forbidden(why) => (StatusCode::FORBIDDEN, why.to_owned()),
            Failure::Token(Refused::Wrong) => (StatusCode::UNAUTHORIZED, "The token is not valid.".to_owned()),
            Failure::Token(Refused::None) => (
                StatusCode::UNAUTHORIZED,
                "A token is required: sign in at /login, or send Authorization: Bearer TOKEN.".to_owned(),
            ),
            Failure::Token(Refused::TooMany(seconds)) => (
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "The token is not valid, and too many wrong tokens came from this address. \
                     Try again in {seconds} s."
                ),
            ),
            Failure::TooSlow => (StatusCode::REQUEST_TIMEOUT, "The form did not arrive in time.".to_owned()),
            Failure::TooLong => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("The form or document is longer than {} KiB.", FORM >> 10))
            }
            Failure::Unclear(why) => (StatusCode::BAD_REQUEST, why),
            Failure::NotTaken(why) => {
                let status = match why {
                    NotTaken::Unknown | NotTaken::Nothing(_) => StatusCode::NOT_FOUND,
                    NotTaken::Full | NotTaken::Over | NotTaken::NoRun | NotTaken::KeepsPlan => StatusCode::CONFLICT,
                    NotTaken::Unclear(_) => StatusCode::BAD_REQUEST,
                };
                (status, why.to_string())
            }
            Failure::Random(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("The system has no random bytes: {error}"))
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
            tracing::error!("{words}");
        }
        (status, words)
    }
}

impl Failure {
    /// The header that programs need in addition to the status.
    fn header(&self) -> Option<[(HeaderName, String); 1]> {
        match self {
            Failure::Token(Refused::TooMany(seconds)) => Some([(header::RETRY_AFTER, seconds.to_string())]),
            Failure::NoStore => Some([(header::RETRY_AFTER, "2".to_owned())]),
            Failure::Store(error) if error.is_transient() => Some([(header::RETRY_AFTER, "2".to_owned())]),
            Failure::Reading(_) | Failure::Busy(_) => Some([(header::RETRY_AFTER, "1".to_owned())]),
            Failure::Token(Refused::Wrong | Refused::None) => {
                Some([(header::WWW_AUTHENTICATE, "Bearer realm=\"weft\"".to_owned())])
            }
            _ => None,
        }
    }

    /// The answer of the API.
    pub(crate) fn into_json(self) -> Response {
        let header = self.header();
        let (status, error) = self.report();
        (status, header, Json(Problem { error })).into_response()
    }

    /// JSON for a path of the API, otherwise a page.
    pub(crate) fn answer(self, path: &str) -> Response {
        if path.starts_with("/api/") { self.into_json() } else { self.into_response() }
    }
}

/// Why a request fails.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// A message for people.
    pub(crate) error: String,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let header = self.header();
        let reading = if let Failure::Reading(frames) = self { Some(frames) } else { None };
        let (status, words) = self.report();
        let page = reading.map_or_else(|| view::error(status, &words), view::captures::reading);
        match page {
            Ok(page) => (status, header, axum::response::Html(page)).into_response(),
            Err(_) => (status, header, words).into_response(),
        }
    }
}

fn status_of(refused: &upload::Refused) -> StatusCode {
    match refused {
        upload::Refused::NoFolder => StatusCode::NOT_FOUND,
        upload::Refused::Busy => StatusCode::SERVICE_UNAVAILABLE,
        upload::Refused::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        upload::Refused::TooSlow => StatusCode::REQUEST_TIMEOUT,
        upload::Refused::CutOff(_) => StatusCode::BAD_REQUEST,
        upload::Refused::NoCapture(_) => StatusCode::UNPROCESSABLE_ENTITY,
        upload::Refused::Namesakes => StatusCode::CONFLICT,
        upload::Refused::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
