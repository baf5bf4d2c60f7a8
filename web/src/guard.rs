//! What stands before and behind every route: the names that the server answers to, and the headers of every answer.

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// No inline script or style, nothing from elsewhere, no frames, no forms.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Set on every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses foreign names and adds the headers.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let mut response = if is_loopback_name(request.headers(), request.uri()) {
        next.run(request).await
    } else {
        // A page of another site can give its own name the address 127.0.0.1; its requests then carry that name.
        (StatusCode::MISDIRECTED_REQUEST, "this server answers to localhost, 127.0.0.1 and [::1] only\n")
            .into_response()
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

fn is_loopback_name(headers: &HeaderMap, uri: &Uri) -> bool {
    let mut named = headers.get_all(header::HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, None) => uri.authority().map(axum::http::uri::Authority::as_str),
        _ => None,
    };
    let Some(host) = host else { return false };
    // The port: behind the last colon, unless that belongs to an IPv6 address.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers_to(host: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
        is_loopback_name(&headers, &Uri::from_static("/"))
    }

    #[test]
    fn loopback_names_with_and_without_port() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.0.0.1", "127.9.9.9", "[::1]", "[::1]:8080"] {
            assert!(answers_to(host), "{host}");
        }
    }

    #[test]
    fn other_names_and_none() {
        for host in
            ["example.org", "localhost.example.org", "127.0.0.1.example.org:80", "10.0.0.1", "[::2]:1", "", ":80"]
        {
            assert!(!answers_to(host), "{host}");
        }
        assert!(!is_loopback_name(&HeaderMap::new(), &Uri::from_static("/")));
        let mut two = HeaderMap::new();
        two.append(header::HOST, HeaderValue::from_static("localhost"));
        two.append(header::HOST, HeaderValue::from_static("example.org"));
        assert!(!is_loopback_name(&two, &Uri::from_static("/")));
    }
}
