//! Sends a capture as a file.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::Subject;
use crate::failure::Failure;

pub(in crate::routes) async fn file(subject: Subject) -> Result<Response, Failure> {
    let file = tokio::fs::File::open(&subject.source.path).await.map_err(Failure::File)?;
    // If the file grows meanwhile, the response has only the first `len` bytes.
    let body = Body::from_stream(ReaderStream::new(file.take(subject.source.len)));
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '=' | '-') { c } else { '_' };
    let name: String = subject.name.chars().map(safe).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, subject.source.len.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, body).into_response())
}
