//! What the tester receives on a connection.

use bytes::Bytes;

/// The result of waiting for bytes from the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// At least one byte of the TCP stream. The boundaries between two results have no meaning.
    Octets(Bytes),
    /// The target closed its half of the connection. Further calls return the same result.
    Fin,
    /// The connection was reset. Further calls return the same result.
    Reset,
    /// The deadline passed first.
    TimedOut,
}
