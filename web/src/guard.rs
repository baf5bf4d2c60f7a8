//! What stands before and behind every route: the names that the server answers to, and the headers of every answer.

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::Gate;
use crate::app::{App, Failure};

/// No inline script or style, nothing from elsewhere, no frames, forms to this server only.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Set on every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not no-referrer: under that a browser sends its own forms with `Origin: null`, as a stranger's.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses foreign names and adds the headers.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = if is_our_name(&app.gate, request.headers(), request.uri()) {
        if has_zero(request.uri()) {
            Failure::NotFound("The address has a zero byte (%00).").answer(request.uri().path())
        } else {
            next.run(request).await
        }
    } else {
        // A page of another site can give its own name the address of this server; its requests then carry that name.
        let words = "This server answers only to loopback names and to the names of weft web --name.\n";
        (StatusCode::MISDIRECTED_REQUEST, words).into_response()
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

/// PostgreSQL knows no text with a zero octet: asked for one, it would report a fault where there is only nothing to find.
fn has_zero(uri: &Uri) -> bool {
    uri.path_and_query().is_some_and(|whole| whole.as_str().contains("%00"))
}

fn is_our_name(gate: &Gate, headers: &HeaderMap, uri: &Uri) -> bool {
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
    // Nobody can make another site's page carry a plain address; without tokens it would still let in who is no operator.
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback() || gate.asks())
        || gate.is_named(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::access::{Access, Tokens};

    fn local() -> Gate {
        Gate::new(Access::default()).unwrap()
    }

    fn named(gate: &Gate, host: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
        is_our_name(gate, &headers, &Uri::from_static("/"))
    }

    fn answers_to(host: &str) -> bool {
        named(&local(), host)
    }

    #[test]
    fn with_tokens_addresses_and_given_names_too() {
        let tokens = Tokens::parse("viewer aaaaaaaaaaaaaaaaaaaa").unwrap();
        let gate = Gate::new(Access { tokens, names: vec!["Lab.example".into()] }).unwrap();
        for host in ["192.0.2.1:7171", "[2001:db8::1]:7171", "lab.example", "LAB.EXAMPLE:80", "localhost"] {
            assert!(named(&gate, host), "{host}");
        }
        for host in ["evil.example", "lab.example.evil.example", "xlab.example", ""] {
            assert!(!named(&gate, host), "{host}");
        }
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
        assert!(!is_our_name(&local(), &HeaderMap::new(), &Uri::from_static("/")));
        let mut two = HeaderMap::new();
        two.append(header::HOST, HeaderValue::from_static("localhost"));
        two.append(header::HOST, HeaderValue::from_static("example.org"));
        assert!(!is_our_name(&local(), &two, &Uri::from_static("/")));
    }
}
