//! The page and the forms for signing in and out.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::extract::{Form, Query};
use crate::access::{COOKIE, Peer, Role, SESSION_LIFETIME, Session, TokenRejection};
use crate::app::App;
use crate::failure::Failure;
use crate::view;

#[derive(Deserialize)]
pub(super) struct LoginQuery {
    next: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct LoginForm {
    token: String,
    next: Option<String>,
}

pub(super) async fn page(
    State(app): State<App>,
    session: Option<Extension<Session>>,
    Query(query): Query<LoginQuery>,
) -> Result<Html<String>, Failure> {
    let session = session.map(|Extension(session)| session);
    Ok(Html(view::login(app.access.requires_token(), session.as_ref(), own(query.next.as_deref()), "")?))
}

pub(super) async fn sign_in(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Form(given): Form<LoginForm>,
) -> Result<Response, Failure> {
    let next = own(given.next.as_deref());
    if !app.access.requires_token() {
        return Ok(Redirect::to(next).into_response());
    }
    let from = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Extension(Peer(address))| address);
    let now = Instant::now();
    let holder = match app.access.holder(given.token.trim(), from, "/login", now) {
        Ok(holder) => holder,
        Err(TokenRejection::Wrong | TokenRejection::Missing) => {
            let page = view::login(true, None, next, "The token is not valid.")?;
            return Ok((StatusCode::UNAUTHORIZED, Html(page)).into_response());
        }
        Err(refused) => return Err(Failure::Token(refused)),
    };
    app.access.close(&headers);
    let cookie = app.access.open(holder, now).map_err(Failure::Random)?;
    if holder.role == Role::Operator {
        tracing::info!("audit: operator at {from}: signs in");
    }
    let cookie = [(header::SET_COOKIE, set_cookie(&headers, &cookie, SESSION_LIFETIME.as_secs()))];
    Ok((cookie, Redirect::to(next)).into_response())
}

pub(super) async fn sign_out(State(app): State<App>, headers: HeaderMap) -> Response {
    app.access.close(&headers);
    ([(header::SET_COOKIE, set_cookie(&headers, "", 0))], Redirect::to("/login")).into_response()
}

/// Returns the value of a `Set-Cookie` header. Scripts cannot read the cookie, and requests from
/// other sites do not carry the cookie. If a proxy adds TLS, the browser sends the cookie only over
/// TLS.
fn set_cookie(headers: &HeaderMap, value: &str, seconds: u64) -> String {
    let is_tls =
        headers.get("x-forwarded-proto").is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"));
    let secure = if is_tls { "; Secure" } else { "" };
    format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Returns `next` if it is an address of this server, otherwise `/`. A link to the sign-in page
/// must not redirect to another site.
fn own(next: Option<&str>) -> &str {
    let is_own = |next: &&str| {
        // Browsers read `//` and `/\` as the start of a host name, and ignore tabs and line feeds.
        next.starts_with('/')
            && !next[1..].starts_with(['/', '\\'])
            && next.bytes().all(|octet| octet.is_ascii_graphic())
            && !next.starts_with("/login")
    };
    next.filter(is_own).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_only_to_this_server() {
        for next in ["/", "/runs/a?b=c", "/runs/a//b"] {
            assert_eq!(own(Some(next)), next);
        }
        for next in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "/a\r\nb: c", "x"]
        {
            assert_eq!(own(Some(next)), "/", "{next:?}");
        }
        assert_eq!(own(None), "/");
    }
}
