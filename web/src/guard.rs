//! Checks the host name of every request, and adds headers to every response.

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::AccessControl;
use crate::app::App;
use crate::failure::Failure;

/// Forbids inline scripts and styles, content of other servers, and frames. Allows only forms that
/// are sent to this server.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The headers of every response.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With no-referrer, a browser would send forms of this server with `Origin: null`, and the
    // server would reject these forms.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Rejects unknown host names and adds the headers.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = if is_our_name(&app.access, request.headers(), request.uri()) {
        if has_zero(request.uri()) {
            Failure::NotFound("The address has a zero byte (%00).").answer(request.uri().path())
        } else {
            next.run(request).await
        }
    } else {
        // Another site can resolve its own name to this server's address (DNS rebinding). Requests
        // from pages of that site then have the name of that site in their Host header.
        let message = "This server answers only to loopback names and to names from the option --name of weft web.\n";
        (StatusCode::MISDIRECTED_REQUEST, message).into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Returns whether the address contains a zero byte. PostgreSQL rejects such text with an error,
/// which would look like a fault of the server.
fn has_zero(uri: &Uri) -> bool {
    uri.path_and_query().is_some_and(|text| text.as_str().contains("%00"))
}

fn is_our_name(access: &AccessControl, headers: &HeaderMap, uri: &Uri) -> bool {
    let mut named = headers.get_all(header::HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, None) => uri.authority().map(axum::http::uri::Authority::as_str),
        _ => None,
    };
    let Some(host) = host else { return false };
    // The port follows the last colon, unless this colon is part of an IPv6 address.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    // An IP address is safe: a page of another site cannot have an address of this server as its
    // host name. Without tokens, only loopback addresses are accepted, because every client is an
    // operator.
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback() || access.requires_token())
        || access.is_named(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::access::{Access, Tokens};

    fn local() -> AccessControl {
        AccessControl::new(Access::default()).unwrap()
    }

    fn named(access: &AccessControl, host: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
        is_our_name(access, &headers, &Uri::from_static("/"))
    }

    fn answers_to(host: &str) -> bool {
        named(&local(), host)
    }

    #[test]
    fn with_tokens_accepts_addresses_and_configured_names() {
        let tokens = Tokens::parse("viewer aaaaaaaaaaaaaaaaaaaa").unwrap();
        let access = AccessControl::new(Access { tokens, names: vec!["Lab.example".into()] }).unwrap();
        for host in ["192.0.2.1:7171", "[2001:db8::1]:7171", "lab.example", "LAB.EXAMPLE:80", "localhost"] {
            assert!(named(&access, host), "{host}");
        }
        for host in ["evil.example", "lab.example.evil.example", "xlab.example", ""] {
            assert!(!named(&access, host), "{host}");
        }
    }

    #[test]
    fn accepts_loopback_names_with_and_without_port() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.0.0.1", "127.9.9.9", "[::1]", "[::1]:8080"] {
            assert!(answers_to(host), "{host}");
        }
    }

    #[test]
    fn rejects_other_names_and_none() {
        for host in
            ["example.org", "localhost.example.org", "127.0.0.1.example.org:80", "10.0.0.1", "[::2]:1", "", ":80"]
        {
            assert!(!answers_to(host), "{host}");
        }
        assert!(!is_our_name(&local(), &HeaderMap::new(), &Uri::from_static("/")));
        let mut two = HeaderMap::new();
        two.append(header::HOST, HeaderValue::from_static("localhost"));
        two.append(header::HOST, HeaderValue::from_static("example.org"));
        assert!(!is_our_name(&local(), &two, &Uri::from_static("/")));
    }
}
