//! Access control: tokens and sessions. [`mod@crate::authorize`] checks every request with this
//! module.
//!
//! Without tokens, every client over loopback is an operator. With tokens, a browser signs in on a
//! page and then has a cookie. Other programs send `Authorization: Bearer TOKEN` with each request.
//! Viewers can only read (GET and HEAD). Operators can send any request. There are no accounts, and
//! TLS is the task of a proxy.

mod control;
mod failures;
mod log_limit;
mod session;
mod sessions;
mod slots;
mod tokens;

pub use control::Access;
pub(crate) use control::{AccessControl, MAX_FORM, TokenRejection};
pub(crate) use session::{Peer, Session};
pub(crate) use sessions::{COOKIE, SESSION_LIFETIME};
pub(crate) use slots::{FOLLOWERS, STREAMS, Slots};
pub use tokens::{Role, Tokens, TokensError};
