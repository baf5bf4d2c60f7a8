//! Errors of `accept`: which of them end a listener, and how long it pauses after others.

use core::time::Duration;
use std::io;

/// A listener that has run out of descriptors or memory tries again after this time: no event
/// reports when some are free.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Errors of `accept` that concern the connection that was to be accepted, not the listener.
pub(super) fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
