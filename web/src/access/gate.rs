//! The state of access control.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};

use super::failures::Failures;
use super::lock::locked;
use super::log_limit::LogLimit;
use super::places::{Places, REQUESTS};
use super::session::Session;
use super::sessions::{self, Sessions};
use super::tokens::{Holder, Role, Tokens};

/// The longest form or document, in bytes.
pub(crate) const FORM: usize = 16 << 10;
/// How long a form may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// The tokens of the server, and its names.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The tokens. Without tokens, the server listens on loopback only.
    pub tokens: Tokens,
    /// Names that the server answers to, in addition to loopback names and, with tokens, plain
    /// addresses. A name is the host in a browser's address bar, without a port.
    pub names: Vec<String>,
}

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The request has no token.
    None,
    /// The token is not valid.
    Wrong,
    /// The token is not valid, and the address sent too many of them. It has to wait for this many
    /// seconds.
    TooMany(u64),
}

/// The state of the door, shared by all requests.
#[derive(Debug)]
pub(crate) struct Gate {
    access: Access,
    /// The session of all clients of a server without tokens.
    local: Session,
    sessions: Mutex<Sessions>,
    failures: Mutex<Failures>,
    log_limit: Mutex<LogLimit>,
    /// Requests in progress.
    pub(crate) requests: Places,
    /// How long a form may take to arrive.
    pub(crate) patience: Duration,
}

impl Gate {
    pub(crate) fn new(access: Access) -> Result<Self, getrandom::Error> {
        let local = Session { role: Role::Operator, owner: None, form_key: Some(sessions::random()?.into()) };
        Ok(Gate {
            access,
            local,
            sessions: Mutex::default(),
            failures: Mutex::default(),
            log_limit: Mutex::default(),
            requests: Places::new(REQUESTS),
            patience: PATIENCE,
        })
    }

    /// Does the server need tokens?
    pub(crate) fn asks(&self) -> bool {
        !self.access.tokens.is_empty()
    }

    /// Is this a configured name of the server?
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.access.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The holder of a token in a request for `path`. A wrong token is logged, unless the address
    /// has to wait.
    pub(crate) fn holder(&self, token: &str, from: IpAddr, path: &str, now: Instant) -> Result<Holder, Refused> {
        if let Some(holder) = self.access.tokens.holder(token) {
            return Ok(holder);
        }
        let mut failures = locked(&self.failures);
        if let Some(seconds) = failures.closed_for(from, now) {
            return Err(Refused::TooMany(seconds));
        }
        failures.add(from, now);
        match locked(&self.log_limit).admit(now) {
            Some(0) => tracing::warn!("wrong token from {from} for {path}"),
            Some(left_out) => tracing::warn!("wrong token from {from} for {path}; {left_out} such lines were left out"),
            None => {}
        }
        Err(Refused::Wrong)
    }

    /// Opens a session; returns the value of its cookie.
    pub(crate) fn open(&self, holder: Holder, now: Instant) -> Result<String, getrandom::Error> {
        locked(&self.sessions).open(holder, now)
    }

    /// Ends the session of the request's cookie.
    pub(crate) fn close(&self, headers: &HeaderMap) {
        if let Some(cookie) = sessions::cookie(headers) {
            locked(&self.sessions).close(cookie);
        }
    }

    /// The session of a request; `None` if it has neither a token nor a valid cookie.
    pub(crate) fn session(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        path: &str,
        now: Instant,
    ) -> Result<Option<Session>, Refused> {
        if !self.asks() {
            return Ok(Some(self.local.clone()));
        }
        if let Some(token) = bearer(headers) {
            let Holder { role, token } = self.holder(token, from, path, now)?;
            return Ok(Some(Session { role, owner: Some(format!("token {token}").into()), form_key: None }));
        }
        Ok(sessions::cookie(headers).and_then(|cookie| locked(&self.sessions).find(cookie, now)))
    }
}

/// The token of a request. The case of the scheme does not matter (RFC 9110, section 11.1). Other
/// schemes are ignored: they are for a proxy, which may pass them on.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    let mut schemes = given.filter_map(|value| value.trim().split_once(' '));
    schemes.find(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim_start())
}
