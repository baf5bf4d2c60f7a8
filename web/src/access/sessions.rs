//! Sessions of browsers. They are in memory only, so a restart of the server signs all users out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};

use super::session::Session;
use super::tokens::Holder;
use crate::hex::hex;

/// Name of the cookie.
pub(crate) const COOKIE: &str = "weft-session";
/// The lifetime of a session.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// The maximum number of sessions of one token. If one more session opens, the token's oldest
/// session ends.
const MAX_SESSIONS: usize = 500;

/// An open session.
#[derive(Debug)]
struct OpenSession {
    session: Session,
    /// The number of the token that opened the session, from 0.
    token: usize,
    since: Instant,
}

/// The sessions, by the value of their cookie.
#[derive(Debug, Default)]
pub(super) struct Sessions(HashMap<String, OpenSession>);

impl Sessions {
    /// Opens a session for the holder of a token. Returns the value of its cookie.
    pub(super) fn open(&mut self, holder: Holder, now: Instant) -> Result<String, getrandom::Error> {
        let (cookie, form_key): (String, Arc<str>) = (random()?, random()?.into());
        let Holder { role, token } = holder;
        self.0.retain(|_, opened| now.saturating_duration_since(opened.since) < SESSION_LIFETIME);
        let of_token = self.0.iter().filter(|(_, opened)| opened.token == token);
        if of_token.clone().count() >= MAX_SESSIONS {
            let oldest = of_token.min_by_key(|(_, opened)| opened.since).map(|(cookie, _)| cookie.clone());
            oldest.and_then(|cookie| self.0.remove(&cookie));
        }
        let session = Session { role, owner: Some(Arc::clone(&form_key)), form_key: Some(form_key) };
        self.0.insert(cookie.clone(), OpenSession { session, token, since: now });
        Ok(cookie)
    }

    pub(super) fn find(&self, cookie: &str, now: Instant) -> Option<Session> {
        let OpenSession { session, since, .. } = self.0.get(cookie)?;
        (now.saturating_duration_since(*since) < SESSION_LIFETIME).then(|| session.clone())
    }

    pub(super) fn close(&mut self, cookie: &str) {
        self.0.remove(cookie);
    }
}

/// Returns the value of the session cookie of a request.
pub(super) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// Returns 256 random bits as 64 hexadecimal digits.
pub(super) fn random() -> Result<String, getrandom::Error> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets)?;
    Ok(hex(&octets))
}

#[cfg(test)]
mod tests {
    use super::super::Role;
    use super::*;

    const VIEWER: Holder = Holder { role: Role::Viewer, token: 0 };
    const OPERATOR: Holder = Holder { role: Role::Operator, token: 1 };

    #[test]
    fn a_session_ends_after_its_lifetime_or_when_closed() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let (first, second) = (sessions.open(VIEWER, now).unwrap(), sessions.open(VIEWER, now).unwrap());
        assert_ne!(first, second);
        assert!(sessions.find(&first, now + SESSION_LIFETIME - Duration::from_secs(1)).is_some());
        assert!(sessions.find(&first, now + SESSION_LIFETIME).is_none());
        sessions.close(&first);
        assert!(sessions.find(&first, now).is_none() && sessions.find(&second, now).is_some());
    }

    #[test]
    fn a_session_over_the_limit_ends_the_oldest_of_its_token() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let (operator, oldest) = (sessions.open(OPERATOR, now).unwrap(), sessions.open(VIEWER, now).unwrap());
        for at in 0..2 * u64::try_from(MAX_SESSIONS).unwrap() {
            sessions.open(VIEWER, now + Duration::from_secs(1 + at)).unwrap();
        }
        assert_eq!(sessions.0.len(), MAX_SESSIONS + 1);
        assert!(sessions.find(&oldest, now).is_none());
        assert!(sessions.find(&operator, now).is_some(), "a session of one token ends no session of another token");
    }

    #[test]
    fn finds_our_cookie_among_others() {
        let headers = HeaderMap::from_iter([(header::COOKIE, "a=b; weft-session=12; c".parse().unwrap())]);
        assert_eq!(cookie(&headers), Some("12"));
        assert_eq!(cookie(&HeaderMap::from_iter([(header::COOKIE, "xweft-session=12".parse().unwrap())])), None);
    }
}
