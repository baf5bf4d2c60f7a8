//! Errors of `accept`. Some errors concern only one connection. After any other error, a listener
//! pauses before it calls `accept` again.

use core::time::Duration;
use std::io;

/// If a listener has run out of descriptors or memory, it waits for this time before it calls
/// `accept` again. No event reports when descriptors or memory become free.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Returns whether an error of `accept` concerns only one connection, not the listener.
pub(super) fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
