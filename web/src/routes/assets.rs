//! The style sheet and scripts, which are in the binary.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

use super::extract::Path;
use crate::failure::Failure;
use crate::hex::hex;

#[derive(RustEmbed)]
#[folder = "assets"]
struct Assets;

pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Failure> {
    let file = Assets::get(&name).ok_or(Failure::NotFound("There is no such file."))?;
    let mime = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let tag = format!("\"{}\"", hex(&file.metadata.sha256_hash()[..16]));
    let same = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let caching = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if same {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    Ok((caching, [(header::CONTENT_TYPE, mime)], file.data).into_response())
}
