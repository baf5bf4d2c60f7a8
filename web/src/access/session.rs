//! The session of a request: the rights and the limits of its client.

use std::net::IpAddr;
use std::sync::Arc;

use subtle::ConstantTimeEq;

use super::tokens::Role;

/// The rights and the limits of the client of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// The name under which limits count the requests of this client. `None` on a server without
    /// tokens, because there are no limits for single clients on such a server.
    pub(crate) owner: Option<Arc<str>>,
    /// The key that every form of this server contains. The server rejects forms without this key,
    /// such as forms of other sites. `None` for clients that send a token with each request:
    /// another site cannot make a browser send that token.
    pub(crate) form_key: Option<Arc<str>>,
}

impl Session {
    /// Returns whether `given` is the form key of this session. Returns `true` if the session has
    /// no form key.
    pub(crate) fn is_form_key(&self, given: &str) -> bool {
        let key = self.form_key.as_deref();
        key.is_none_or(|key| bool::from(given.as_bytes().ct_eq(key.as_bytes())))
    }
}

/// The source address of a request. [`connections`](crate::connections) adds this extension to each
/// request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);
