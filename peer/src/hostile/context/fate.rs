//! The outcome of a connection.

/// The outcome of a connection, as a connection manager reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was established, and has ended.
    Disconnected,
    /// It was not established.
    Failed,
    /// The peer rejected it.
    Rejected,
}
