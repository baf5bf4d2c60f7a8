//! Errors of `accept`: which errors end a listener, and how long it pauses after other errors.

use core::time::Duration;
use std::io;

/// Time before a listener that has run out of descriptors or memory tries again. No event reports
/// when some become free.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Returns whether an error of `accept` concerns only one connection, not the listener.
pub(super) fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
