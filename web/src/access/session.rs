//! The client of a request.

use std::net::IpAddr;
use std::sync::Arc;

use subtle::ConstantTimeEq;

use super::tokens::Role;

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

/// The source address of a request, which [`connections`](crate::connections) adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);
