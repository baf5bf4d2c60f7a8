//! Who may do what: tokens, sessions, and the door before every route.
//!
//! Without tokens the server is for whoever reaches it over loopback, who is its operator. With tokens a browser signs in on a page
//! and holds a cookie from then on; other programs send `Authorization: Bearer TOKEN` with each request. Viewers read (GET and
//! HEAD), operators post too. What stays out: accounts, and TLS, which is for a proxy in front.

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

/// For a form to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who may reach the server, and under which names.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The tokens; none of them is for loopback only.
    pub tokens: Tokens,
    /// Names that the server answers to beside those of loopback (and, with tokens, plain addresses): what stands in browsers' address
    /// bars, without a port.
    pub names: Vec<String>,
}

/// Whose request it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// Requests with the same owner count together where places are limited. `None` without tokens, where all clients share a session.
    pub(crate) owner: Option<Arc<str>>,
    /// What every form of a page holds, so that another site's form is told from ours. `None` for programs with a token of their own:
    /// no browser adds that by itself.
    pub(crate) form_key: Option<Arc<str>>,
}

impl Session {
    /// Is `given` what our own forms hold?
    pub(crate) fn takes(&self, given: &str) -> bool {
        let key = self.form_key.as_deref();
        key.is_none_or(|key| bool::from(given.as_bytes().ct_eq(key.as_bytes())))
    }
}

/// A request that a page of another site makes without a person who follows a link.
pub(crate) const FOREIGN: Failure =
    Failure::Forbidden("A page of another site may link to this server, but not fetch from it.");
/// A form of another site.
pub(crate) const FORGED: Failure = Failure::Forbidden("This form was not sent by a page of this server.");

/// The address that a request came from. Set by the one who took the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Why a token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is none.
    None,
    /// It is not one of ours.
    Wrong,
    /// It is not one of ours either, and too many such came from that address; again in so many seconds.
    TooMany(u64),
}

/// What the door knows. Shared by all requests.
#[derive(Debug)]
pub(crate) struct Gate {
    access: Access,
    /// The session of whoever comes over loopback, where there are no tokens.
    local: Session,
    sessions: Mutex<Sessions>,
    failures: Mutex<Failures>,
    log_limit: Mutex<LogLimit>,
    /// Requests under way.
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

    /// Does it ask for tokens?
    pub(crate) fn asks(&self) -> bool {
        !self.access.tokens.is_empty()
    }

    /// Is it one of the names that were configured?
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.access.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The holder of a token that came from an address for a path. A wrong token is logged, unless the address has to wait.
    pub(crate) fn holder(&self, token: &str, from: IpAddr, path: &str, now: Instant) -> Result<Holder, Refused> {
        if let Some(holder) = self.access.tokens.holder(token) {
            return Ok(holder);
        }
        let mut failures = held(&self.failures);
        if let Some(seconds) = failures.closed_for(from, now) {
            return Err(Refused::TooMany(seconds));
        }
        failures.add(from, now);
        match held(&self.log_limit).admit(now) {
            Some(0) => tracing::warn!("wrong token from {from} for {path}"),
            Some(left_out) => tracing::warn!("wrong token from {from} for {path}; {left_out} such lines were left out"),
            None => {}
        }
        Err(Refused::Wrong)
    }

    /// Opens a session; returns the value of its cookie.
    pub(crate) fn open(&self, holder: Holder, now: Instant) -> Result<String, getrandom::Error> {
        held(&self.sessions).open(holder, now)
    }

    /// Ends the session of the request's cookie.
    pub(crate) fn close(&self, headers: &HeaderMap) {
        if let Some(cookie) = sessions::cookie(headers) {
            held(&self.sessions).close(cookie);
        }
    }

    /// Whose request it is; `None` where nobody signed in.
    fn session(&self, headers: &HeaderMap, from: IpAddr, path: &str, now: Instant) -> Result<Option<Session>, Refused> {
        if !self.asks() {
            return Ok(Some(self.local.clone()));
        }
        if let Some(token) = bearer(headers) {
            let Holder { role, token } = self.holder(token, from, path, now)?;
            return Ok(Some(Session { role, owner: Some(format!("token {token}").into()), form_key: None }));
        }
        Ok(sessions::cookie(headers).and_then(|cookie| held(&self.sessions).find(cookie, now)))
    }
}

/// The token of a request. The name of the scheme has no case (RFC 9110, section 11.1). Other schemes are for a proxy in front,
/// which may pass them on.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    let mut schemes = given.filter_map(|value| value.trim().split_once(' '));
    schemes.find(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim_start())
}

/// What a panic of another thread left is whole: nothing under these locks panics half-way.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
