//! The state of access control: tokens, sessions, and limits for clients.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};

use super::failures::Failures;
use super::log_limit::LogLimit;
use super::session::Session;
use super::sessions::{self, Sessions};
use super::slots::{REQUESTS, Slots};
use super::tokens::{Holder, Role, Tokens};
use crate::lock::locked;

/// The maximum length of the body of a form or of a JSON document in bytes.
pub(crate) const MAX_FORM: usize = 16 << 10;
/// The time within which the complete body of a form must arrive.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// The tokens of clients, and the host names of the server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The tokens. Without tokens, the server listens on loopback only.
    pub tokens: Tokens,
    /// Host names, without ports, that the server accepts in requests. The server also accepts
    /// loopback names and, with tokens, IP addresses.
    pub names: Vec<String>,
}

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenRejection {
    /// The request has no token.
    #[error("A token is required: sign in at /login, or send Authorization: Bearer TOKEN.")]
    Missing,
    /// The token is not valid.
    #[error("The token is not valid.")]
    Wrong,
    /// The token is not valid, and the client's address has sent too many wrong tokens. The address
    /// has to wait for this many seconds.
    #[error("The token is not valid, and too many wrong tokens came from this address. Try again in {0} s.")]
    TooMany(u64),
}

/// The state of access control, shared by all requests.
#[derive(Debug)]
pub(crate) struct AccessControl {
    config: Access,
    /// The session of all clients of a server without tokens.
    local: Session,
    sessions: Mutex<Sessions>,
    failures: Mutex<Failures>,
    log_limit: Mutex<LogLimit>,
    /// Slots for requests in progress.
    pub(crate) requests: Slots,
    /// The time within which the complete body of a form must arrive.
    pub(crate) form_timeout: Duration,
}

impl AccessControl {
    pub(crate) fn new(access: Access) -> Result<Self, getrandom::Error> {
        let local = Session { role: Role::Operator, owner: None, form_key: Some(sessions::random()?.into()) };
        Ok(AccessControl {
            config: access,
            local,
            sessions: Mutex::default(),
            failures: Mutex::default(),
            log_limit: Mutex::default(),
            requests: Slots::new(REQUESTS),
            form_timeout: FORM_TIMEOUT,
        })
    }

    /// Returns whether the server requires tokens.
    pub(crate) fn requires_token(&self) -> bool {
        !self.config.tokens.is_empty()
    }

    /// Returns whether `name` is a configured name of the server.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.config.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns the holder of a token in a request for `path`, or an error if the token is wrong.
    /// Counts and logs the wrong token, unless the address `from` has already sent too many wrong
    /// tokens.
    pub(crate) fn holder(&self, token: &str, from: IpAddr, path: &str, now: Instant) -> Result<Holder, TokenRejection> {
        if let Some(holder) = self.config.tokens.holder(token) {
            return Ok(holder);
        }
        let mut failures = locked(&self.failures);
        if let Some(seconds) = failures.remaining_wait(from, now) {
            return Err(TokenRejection::TooMany(seconds));
        }
        failures.add(from, now);
        match locked(&self.log_limit).admit(now) {
            Some(0) => tracing::warn!("wrong token from {from} for {path}"),
            Some(left_out) => {
                tracing::warn!("wrong token from {from} for {path}; earlier wrong tokens not logged: {left_out}");
            }
            None => {}
        }
        Err(TokenRejection::Wrong)
    }

    /// Opens a session. Returns the value of the session's cookie.
    pub(crate) fn open(&self, holder: Holder, now: Instant) -> Result<String, getrandom::Error> {
        locked(&self.sessions).open(holder, now)
    }

    /// Ends the session of the request's cookie.
    pub(crate) fn close(&self, headers: &HeaderMap) {
        if let Some(cookie) = sessions::cookie(headers) {
            locked(&self.sessions).close(cookie);
        }
    }

    /// Returns the session of a request. Returns `None` if the request has neither a token nor a
    /// valid cookie, and an error if the request has a wrong token.
    pub(crate) fn session(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        path: &str,
        now: Instant,
    ) -> Result<Option<Session>, TokenRejection> {
        if !self.requires_token() {
            return Ok(Some(self.local.clone()));
        }
        if let Some(token) = bearer(headers) {
            let Holder { role, token } = self.holder(token, from, path, now)?;
            return Ok(Some(Session { role, owner: Some(format!("token {token}").into()), form_key: None }));
        }
        Ok(sessions::cookie(headers).and_then(|cookie| locked(&self.sessions).find(cookie, now)))
    }
}

/// Returns the token of a request. The name of the authentication scheme can be in upper or lower
/// case (RFC 9110, section 11.1). weft ignores schemes other than `Bearer`, because a proxy can
/// forward a header that the client sent for the proxy itself.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    let mut schemes = given.filter_map(|value| value.trim().split_once(' '));
    schemes.find(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim_start())
}
