//! The door: admits clients and their POST requests.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::access::{FORM, Peer, Refused, Role, Session};
use crate::app::App;
use crate::failure::Failure;
use crate::kept::Kept;

/// The field of every form that holds the session's key.
const FORM_KEY: &str = "key";

/// The error for a fetch by a page of another site.
const FOREIGN: Failure = Failure::Forbidden("A page of another site may link to this server, but not fetch from it.");
/// The error for a form of another site.
pub(crate) const FORGED: Failure = Failure::Forbidden("This form was not sent by a page of this server.");

/// Admits or rejects a request, and adds the [`Session`] to it.
pub(crate) async fn door(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let from = request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Peer(address)| *address);
    // The health check needs no token and no place, and ignores headers that a proxy adds.
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if path == "/healthz" && is_read && !is_embedded_elsewhere(request.headers()) {
        return next.run(request).await;
    }
    let session = match app.gate.session(request.headers(), from, path, Instant::now()) {
        Ok(session) => session,
        Err(refused) => return Failure::Token(refused).answer(path),
    };
    let Some(place) = app.gate.requests.take(session.as_ref()) else {
        return Failure::Busy("Too many requests are in progress. Try again in a second.").answer(path);
    };
    // The page for signing in, and its style, show nothing of a run.
    let is_open = path == "/login" || path.starts_with("/assets/");
    if session.is_none() && !is_open {
        return reject_unknown(&request);
    }
    if is_embedded_elsewhere(request.headers()) {
        return FOREIGN.answer(path);
    }
    if !is_read {
        let may =
            matches!(path, "/login" | "/logout") || session.as_ref().is_some_and(|who| who.role == Role::Operator);
        if !may {
            return Failure::Forbidden("Only an operator may do that.").answer(path);
        }
        let path = path.to_owned();
        let whose = session.as_ref();
        let looked_at =
            if is_upload(&request) { upload(request) } else { posted(request, whose, app.gate.patience).await };
        request = match looked_at {
            Ok(request) => request,
            Err(failure) => return failure.answer(&path),
        };
    }
    // Logged before the action, because a client that disconnects ends this function anywhere. The
    // route for signing in logs by itself.
    if !is_read
        && request.uri().path() != "/login"
        && session.as_ref().is_some_and(|session| session.role == Role::Operator)
    {
        tracing::info!("audit: operator at {from}: {} {}", request.method(), request.uri().path());
    }
    if let Some(session) = session {
        request.extensions_mut().insert(session);
    }
    // The request keeps its place until its complete answer is sent.
    next.run(request).await.map(|body| Kept::body(body, place))
}

/// Redirects a browser to the page for signing in; other clients get an error.
fn reject_unknown(request: &Request) -> Response {
    let wants_page = request.method() == Method::GET
        && request.headers().get(header::ACCEPT).is_some_and(|kinds| kinds.as_bytes().starts_with(b"text/html"));
    if wants_page {
        let next = request.uri().path_and_query().map_or("/", |next| next.as_str());
        let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    Failure::Token(Refused::None).into_json()
}

/// Reads the complete body, which a page of this server must have sent.
async fn posted(request: Request, session: Option<&Session>, patience: Duration) -> Result<Request, Failure> {
    if !is_same_origin(request.headers()) {
        return Err(FORGED);
    }
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(patience, to_bytes(body, FORM));
    let form = read.await.map_err(|_| Failure::TooSlow)?.map_err(|_| Failure::TooLong)?;
    // For JSON and DELETE from another site, a browser asks the server first, which never agrees.
    let is_form = !parts.uri.path().starts_with("/api/") || parts.method == Method::POST && !is_json(&parts.headers);
    // A client without a session has no key. It may only post a token, which other sites do not
    // know.
    if let Some(session) = session.filter(|_| is_form) {
        let given = form_urlencoded::parse(&form).find(|(name, _)| name == FORM_KEY);
        if !session.takes(given.as_ref().map_or("", |(_, given)| given)) {
            return Err(FORGED);
        }
    }
    Ok(Request::from_parts(parts, Body::from(form)))
}

/// An upload is too long for memory here. Its route checks the key of the form, or a content type
/// that no form can send.
fn is_upload(request: &Request) -> bool {
    *request.method() == Method::POST && matches!(request.uri().path(), "/captures" | "/api/captures")
}

fn upload(request: Request) -> Result<Request, Failure> {
    if is_same_origin(request.headers()) { Ok(request) } else { Err(FORGED) }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// True if a page of another site fetches this as a script, image or frame: without tokens, any
/// such page could make the server work. Links pass. Only browsers send these headers, and over
/// plain HTTP only to loopback.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let value = |name: &'static str| headers.get(HeaderName::from_static(name)).map(HeaderValue::as_bytes);
    let is_foreign = matches!(value("sec-fetch-site"), Some(b"cross-site" | b"same-site"));
    let is_link = value("sec-fetch-mode") == Some(b"navigate") && value("sec-fetch-dest") == Some(b"document");
    is_foreign && !is_link
}

/// Browsers send the origin of a POST request, which must be this server. Other programs may omit
/// it.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let site = headers.get(HeaderName::from_static("sec-fetch-site"));
    if site.is_some_and(|site| site != "same-origin") {
        return false;
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, name)| name);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    matches!((origin, host), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(pairs: &[(&'static str, &'static str)]) -> bool {
        is_same_origin(&pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect())
    }

    fn embedded(site: &'static str, mode: &'static str, dest: &'static str) -> bool {
        let pairs = [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
        let pairs = pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        is_embedded_elsewhere(&HeaderMap::from_iter(pairs))
    }

    #[test]
    fn rejects_fetches_of_other_sites_except_links() {
        for site in ["cross-site", "same-site"] {
            assert!(embedded(site, "no-cors", "image"), "a picture");
            assert!(embedded(site, "cors", "empty"), "fetch");
            assert!(embedded(site, "navigate", "iframe"), "a frame");
            assert!(!embedded(site, "navigate", "document"), "a link");
        }
        assert!(!embedded("same-origin", "cors", "empty"), "a page of ours");
        assert!(!embedded("none", "navigate", "document"), "an address that the user typed");
        assert!(!is_embedded_elsewhere(&HeaderMap::new()), "no browser");
    }

    #[test]
    fn accepts_posts_of_this_server_only() {
        assert!(same(&[("host", "lab:1"), ("origin", "http://lab:1"), ("sec-fetch-site", "same-origin")]));
        assert!(same(&[("host", "lab"), ("origin", "https://LAB")]), "a proxy adds TLS");
        assert!(same(&[("host", "lab")]), "no browser");
        assert!(!same(&[("host", "lab:1"), ("origin", "http://lab:2")]));
        assert!(!same(&[("host", "lab"), ("origin", "http://lab.evil.example")]));
        assert!(!same(&[("host", "lab"), ("origin", "null")]));
        for site in ["cross-site", "same-site", "none"] {
            assert!(!same(&[("host", "lab"), ("sec-fetch-site", site)]), "{site}");
        }
    }
}
