//! The outcome of a connection.

/// The outcome of a connection, as a connection manager reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionOutcome {
    /// The connection was established and has ended.
    Disconnected,
    /// The connection could not be established.
    Failed,
    /// The peer rejected the connection.
    Rejected,
}
