//! Access control: tokens, sessions, and the door before every route.
//!
//! Without tokens, every client over loopback is an operator. With tokens, a browser signs in on a
//! page and then has a cookie; other programs send `Authorization: Bearer TOKEN` with each request.
//! Viewers read (GET and HEAD); operators may send any request. There are no accounts, and TLS is
//! the task of a proxy.

mod door;
mod failures;
mod log_limit;
mod places;
mod sessions;
mod tokens;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq;

use crate::app::Failure;
pub(crate) use door::{FORM, door};
use failures::Failures;
use log_limit::LogLimit;
pub(crate) use places::{FOLLOWERS, Places, REQUESTS, STREAMS};
use sessions::Sessions;
pub(crate) use sessions::{COOKIE, LASTS};
pub(crate) use tokens::Holder;
pub use tokens::{Role, Tokens, TokensError};

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

/// The client of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// Limits apply to all requests of an owner. `None` without tokens: all clients share a
    /// session.
    pub(crate) owner: Option<Arc<str>>,
    /// The key in every form of a page, which a form of another site does not have. `None` for
    /// programs that send a token: no browser adds a token by itself.
    pub(crate) form_key: Option<Arc<str>>,
}

impl Session {
    /// Is `given` the key of our forms?
    pub(crate) fn takes(&self, given: &str) -> bool {
        let key = self.form_key.as_deref();
        key.is_none_or(|key| bool::from(given.as_bytes().ct_eq(key.as_bytes())))
    }
}

/// The error for a fetch by a page of another site.
pub(crate) const FOREIGN: Failure =
    Failure::Forbidden("A page of another site may link to this server, but not fetch from it.");
/// The error for a form of another site.
pub(crate) const FORGED: Failure = Failure::Forbidden("This form was not sent by a page of this server.");

/// The source address of a request, which [`connections`](crate::connections) adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

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
    fn session(&self, headers: &HeaderMap, from: IpAddr, path: &str, now: Instant) -> Result<Option<Session>, Refused> {
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

/// Ignores poisoning: no code under these locks panics during an update.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
