//! The result of a tester's wait on a connection.

use bytes::Bytes;

/// The result of waiting for bytes of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// Octets of the stream, at least one; where they are cut means nothing.
    Octets(Bytes),
    /// The target closed its half. Further calls return the same.
    Fin,
    /// The connection was reset. Further calls return the same.
    Reset,
    /// The deadline came first.
    TimedOut,
}
