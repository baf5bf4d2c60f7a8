//! The two sides of SDP's start-up.

/// The part that a side plays in SDP's start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sends Hello.
    Connecting,
    /// Answers by HelloAck.
    Accepting,
}
