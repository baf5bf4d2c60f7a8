//! What every route can use, and how a route fails.

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;
use weft_suites::store::{Store, StoreError};

use crate::access::{Gate, Refused};
use crate::captures::{Captures, upload};
use crate::live::Hub;
use crate::view;

/// Shared by all requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) store: Store,
    /// Evidence paths are relative to it.
    pub(crate) folder: PathBuf,
    pub(crate) hub: Hub,
    pub(crate) gate: Arc<Gate>,
    pub(crate) captures: Captures,
    /// Becomes `true` when the server goes down.
    pub(crate) stopped: watch::Receiver<bool>,
}

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no such thing; what, in words.
    NotFound(&'static str),
    /// The store cannot be read.
    Store(StoreError),
    /// A page could not be made.
    Page(askama::Error),
    /// A file of evidence cannot be read.
    File(std::io::Error),
    /// Who asks may not; why, in words.
    Forbidden(&'static str),
    /// The token is not taken.
    Token(Refused),
    /// A form did not arrive in time.
    TooSlow,
    /// A form is longer than any of ours.
    TooLong,
    /// The machine gives no random octets.
    Random(getrandom::Error),
    /// A capture is being read; so many packets so far.
    Reading(u64),
    /// Too many captures are being read.
    Busy,
    /// A capture cannot be read; why.
    Unreadable(Arc<str>),
    /// An upload is not taken.
    Upload(upload::Refused),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl From<askama::Error> for Failure {
    fn from(error: askama::Error) -> Self {
        Failure::Page(error)
    }
}

impl Failure {
    /// Its status and words; faults of the server are logged.
    pub(crate) fn told(self) -> (StatusCode, String) {
        let (status, words) = match self {
            Failure::NotFound(what) => (StatusCode::NOT_FOUND, what.to_owned()),
            Failure::Store(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::Page(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::Forbidden(why) => (StatusCode::FORBIDDEN, why.to_owned()),
            Failure::Token(Refused::Wrong) => (StatusCode::UNAUTHORIZED, "This token is not known here.".to_owned()),
            Failure::Token(Refused::TooMany(seconds)) => (
                StatusCode::TOO_MANY_REQUESTS,
                format!("Too many wrong tokens came from this address; it may try again in {seconds} s."),
            ),
            Failure::TooSlow => (StatusCode::REQUEST_TIMEOUT, "The form did not arrive in time.".to_owned()),
            Failure::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "No form of this server is that long.".to_owned()),
            Failure::Random(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Failure::Reading(frames) => {
                (StatusCode::SERVICE_UNAVAILABLE, format!("The capture is being read: {frames} packets so far."))
            }
            Failure::Busy => (StatusCode::SERVICE_UNAVAILABLE, "Too many captures are being read.".to_owned()),
            Failure::Unreadable(why) => {
                (StatusCode::UNPROCESSABLE_ENTITY, format!("The capture cannot be read: it {why}."))
            }
            Failure::Upload(refused) => (status_of(&refused), refused.to_string()),
            Failure::File(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("the file cannot be read: {error}")),
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!("{words}");
        }
        (status, words)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let wait = match self {
            Failure::Token(Refused::TooMany(seconds)) => Some([(header::RETRY_AFTER, seconds.to_string())]),
            Failure::Reading(_) | Failure::Busy => Some([(header::RETRY_AFTER, "1".to_owned())]),
            _ => None,
        };
        let reading = if let Failure::Reading(frames) = self { Some(frames) } else { None };
        let (status, words) = self.told();
        let page = reading.map_or_else(|| view::error(status, &words), view::captures::reading);
        match page {
            Ok(page) => (status, wait, axum::response::Html(page)).into_response(),
            Err(_) => (status, wait, words).into_response(),
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
