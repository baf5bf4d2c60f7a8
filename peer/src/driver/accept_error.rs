//! Errors of `accept`. Some errors concern only one connection. After any other error, a listener
//! pauses before it tries again.

use core::time::Duration;
use std::io;

/// Time before a listener that has run out of descriptors or memory tries again. No event reports
/// when descriptors or memory become free.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Returns whether an error of `accept` concerns only one connection, not the listener.
pub(super) fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
