//! Tests of requests from pages of other sites, in a browser that can reach the server.

use super::access::{OPERATOR, READ, guarded, signed_in};
use super::*;

/// A GET request like that of a page of another site.
async fn fetched(site: &Site, path: &str, headers: &[&str]) -> (StatusCode, String) {
    let mut request = Request::get(path).header(header::HOST, "localhost:1");
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let answer = site.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = answer.status();
    // An event stream has no end.
    if status != StatusCode::FORBIDDEN {
        return (status, String::new());
    }
    (status, String::from_utf8(octets(answer).await).unwrap())
}

/// Without the check for fetches by other sites, any page in a browser of this host could put load
/// on the server. On a server with tokens, any page in an operator's browser could do so.
#[tokio::test]
async fn rejects_fetches_of_other_sites() {
    let (open, closed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (open, closed) = (site(open.path()).await, guarded(closed.path()).await);
    let (cookie, _) = signed_in(&closed, OPERATOR).await;
    let costly = ["/api/filter?text=tcp", "/captures/x?filter=tcp", "/api/captures/x/packets?filter=tcp"];
    let others = ["/login", "/healthz", "/assets/style.css", "/none"];
    for path in READ.into_iter().chain(costly).chain(others) {
        for (site, session) in [(&open, None), (&closed, Some(cookie.as_str()))] {
            for kind in [
                ["sec-fetch-site: cross-site", "sec-fetch-mode: no-cors", "sec-fetch-dest: image"],
                ["sec-fetch-site: same-site", "sec-fetch-mode: cors", "sec-fetch-dest: empty"],
                ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: iframe"],
            ] {
                let headers: Vec<&str> = kind.into_iter().chain(session).collect();
                let (status, text) = fetched(site, path, &headers).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{path} {headers:?}");
                assert!(
                    text.contains("A page of another site can link to this server, but must not load"),
                    "{path}: {text}"
                );
            }
            // These requests come from a page of this server, and from a link that the user
            // follows.
            for kind in [
                ["sec-fetch-site: same-origin", "sec-fetch-mode: cors", "sec-fetch-dest: empty"],
                ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: document"],
            ] {
                let headers: Vec<&str> = kind.into_iter().chain(session).collect();
                let (status, _) = fetched(site, path, &headers).await;
                assert_ne!(status, StatusCode::FORBIDDEN, "{path} {headers:?}");
            }
        }
    }
}
