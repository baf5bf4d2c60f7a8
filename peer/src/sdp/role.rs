//! The two sides of SDP's start-up.

/// Role of a side in the start-up of SDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that sends Hello.
    Connecting,
    /// The side that answers with HelloAck.
    Accepting,
}
