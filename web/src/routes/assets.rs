//! The style sheets and scripts, which are in the binary.

use std::borrow::Cow;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};
use weft_suites::report::TOKENS;

use super::extract::Path;
use crate::failure::Failure;
use crate::hex::hex;

#[derive(RustEmbed)]
#[folder = "assets"]
struct Assets;

/// Returns the bytes of a file, and their SHA-256. The reports have the same design tokens as the
/// pages, so the tokens are not in the folder of this crate.
fn find(name: &str) -> Option<(Cow<'static, [u8]>, [u8; 32])> {
    if name == "tokens.css" {
        return Some((Cow::Borrowed(TOKENS.as_bytes()), Sha256::digest(TOKENS).into()));
    }
    let file = Assets::get(name)?;
    Some((file.data, file.metadata.sha256_hash()))
}

pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Failure> {
    let (data, hash) = find(&name).ok_or(Failure::NotFound("There is no such file."))?;
    let mime = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let tag = format!("\"{}\"", hex(&hash[..16]));
    let same = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let caching = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if same {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    Ok((caching, [(header::CONTENT_TYPE, mime)], data).into_response())
}
