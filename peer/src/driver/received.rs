//! What the tester receives on a connection.

use bytes::Bytes;

/// The result of waiting for bytes from the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// At least one byte of the TCP stream. The position at which the stream is split between two
    /// results has no meaning.
    Octets(Bytes),
    /// The target closed its half of the connection. Further calls return the same result.
    Fin,
    /// The connection was reset. Further calls return the same result.
    Reset,
    /// The deadline passed before anything arrived.
    TimedOut,
}
