//! Authorizes requests: finds the client's session, and checks the client's role. A form must come
//! from a page of this server.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::access::{MAX_FORM, Peer, Role, Session, TokenRejection};
use crate::app::App;
use crate::failure::Failure;
use crate::owning_body::OwningBody;

/// Name of the hidden field in every form. The field contains the form key of the session.
const FORM_KEY: &str = "key";

/// The error for a fetch by a page of another site.
const FOREIGN: Failure =
    Failure::Forbidden("A page of another site can link to this server, but must not load data from it.");
/// The error for a form of another site.
pub(crate) const FORGED: Failure = Failure::Forbidden("This form was not sent by a page of this server.");

/// Admits or rejects a request. Adds the client's [`Session`] to the extensions of an admitted
/// request.
pub(crate) async fn authorize(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let from = request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Peer(address)| *address);
    // The health check needs no token and no slot, and ignores headers that a proxy adds.
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if path == "/healthz" && is_read && !is_embedded_elsewhere(request.headers()) {
        return next.run(request).await;
    }
    let session = match app.access.session(request.headers(), from, path, Instant::now()) {
        Ok(session) => session,
        Err(refused) => return Failure::Token(refused).answer(path),
    };
    let Some(slot) = app.access.requests.take(session.as_ref()) else {
        return Failure::Busy("Too many requests are in progress. Try again in a second.").answer(path);
    };
    // The sign-in page and the assets contain no results, so these requests need no session.
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
            return Failure::Forbidden("Only an operator is allowed to do that.").answer(path);
        }
        let path = path.to_owned();
        let whose = session.as_ref();
        if !is_same_origin(request.headers()) {
            return FORGED.answer(&path);
        }
        if !is_upload(&request) {
            request = match posted(request, whose, app.access.form_timeout).await {
                Ok(request) => request,
                Err(failure) => return failure.answer(&path),
            };
        }
    }
    // Write the log line before the action, because this function can end at any await if the
    // client disconnects. The sign-in route writes its own log lines.
    if !is_read
        && request.uri().path() != "/login"
        && session.as_ref().is_some_and(|session| session.role == Role::Operator)
    {
        tracing::info!("audit: operator at {from}: {} {}", request.method(), request.uri().path());
    }
    if let Some(session) = session {
        request.extensions_mut().insert(session);
    }
    // The request keeps its slot until the complete response is sent.
    next.run(request).await.map(|body| OwningBody::body(body, slot))
}

/// Redirects a browser to the sign-in page. Other clients get an error.
fn reject_unknown(request: &Request) -> Response {
    let wants_page = request.method() == Method::GET
        && request.headers().get(header::ACCEPT).is_some_and(|kinds| kinds.as_bytes().starts_with(b"text/html"));
    if wants_page {
        let next = request.uri().path_and_query().map_or("/", |next| next.as_str());
        let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        return Redirect::to(&format!("/login?next={next}")).into_response();
    }
    Failure::Token(TokenRejection::Missing).into_json()
}

/// Reads the complete body of a request. Returns an error if the form key is wrong, or if the body
/// is too slow or too long.
async fn posted(request: Request, session: Option<&Session>, form_timeout: Duration) -> Result<Request, Failure> {
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(form_timeout, to_bytes(body, MAX_FORM));
    let form = read.await.map_err(|_| Failure::TooSlow)?.map_err(|_| Failure::TooLong)?;
    // Before a page of another site can send JSON or DELETE, the browser sends an OPTIONS request,
    // which this server rejects. So only requests that a form can send need the form key.
    let is_form = !parts.uri.path().starts_with("/api/") || parts.method == Method::POST && !is_json(&parts.headers);
    // A client without a session has no key. Such a client can only post a token, and other sites
    // do not know the token.
    if let Some(session) = session.filter(|_| is_form) {
        let given = form_urlencoded::parse(&form).find(|(name, _)| name == FORM_KEY);
        if !session.is_form_key(given.as_ref().map_or("", |(_, given)| given)) {
            return Err(FORGED);
        }
    }
    Ok(Request::from_parts(parts, Body::from(form)))
}

/// Returns whether the request is an upload. The body of an upload can be too long to keep in
/// memory, so the upload routes check the request themselves. The page's route checks the form key.
/// The API's route requires a content type that no form can send.
fn is_upload(request: &Request) -> bool {
    *request.method() == Method::POST && matches!(request.uri().path(), "/captures" | "/api/captures")
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns whether a page of another site fetches this address as a script, image or frame. On a
/// server without tokens, any such page could put load on the server. This function does not reject
/// links from other sites. Only browsers send the `Sec-Fetch` headers. Over plain HTTP, browsers
/// send these headers only to loopback addresses.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let value = |name: &'static str| headers.get(HeaderName::from_static(name)).map(HeaderValue::as_bytes);
    let is_foreign = matches!(value("sec-fetch-site"), Some(b"cross-site" | b"same-site"));
    let is_link = value("sec-fetch-mode") == Some(b"navigate") && value("sec-fetch-dest") == Some(b"document");
    is_foreign && !is_link
}

/// Returns whether a request can come from a page of this server. With each POST request, a browser
/// also sends the origin of the page. This origin must be this server. Programs that are not
/// browsers may omit the `Origin` header.
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
        assert!(!embedded("same-origin", "cors", "empty"), "a page of this server");
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
