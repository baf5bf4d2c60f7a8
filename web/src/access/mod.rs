//! Access control: tokens and sessions. [`mod@crate::door`] applies it to every request.
//!
//! Without tokens, every client over loopback is an operator. With tokens, a browser signs in on a
//! page and then has a cookie; other programs send `Authorization: Bearer TOKEN` with each request.
//! Viewers read (GET and HEAD); operators may send any request. There are no accounts, and TLS is
//! the task of a proxy.

mod failures;
mod gate;
mod lock;
mod log_limit;
mod places;
mod session;
mod sessions;
mod tokens;

pub use gate::Access;
pub(crate) use gate::{FORM, Gate, Refused};
pub(crate) use places::{FOLLOWERS, Places, STREAMS};
pub(crate) use session::{Peer, Session};
pub(crate) use sessions::{COOKIE, LASTS};
pub use tokens::{Role, Tokens, TokensError};
