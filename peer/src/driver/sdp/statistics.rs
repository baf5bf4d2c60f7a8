//! A socket's statistics.

use weft_core::wire::sdp::Mode;

use crate::sdp::Moved;

/// A connection's state, and its counters since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// The half on which this side sends.
    pub sending: HalfStatistics,
    /// The half on which this side receives.
    pub receiving: HalfStatistics,
    /// Messages that this side may send now (section 10.2).
    pub credit: u16,
    /// Messages that the peer may send now, by the credit that it got.
    pub credit_given: u16,
    /// Octets of a message that this side may send: the size of the peer's Private Buffers.
    pub message_limit: u32,
    /// Octets of this side's Private Buffers.
    pub recv_size: u32,
    /// Octets that were written and are not out.
    pub unsent: u64,
    /// Octets that have arrived and were not read; those that lie in Private Buffers do not count.
    pub unread: u64,
    /// Octets that this side copied: from and to its users, and for Bcopy.
    pub copied: u64,
}

/// One half-connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfStatistics {
    /// Its Mode (section 11).
    pub mode: Mode,
    /// What has moved, by mechanism.
    pub moved: Moved,
    /// This side's advertisements that are outstanding: SrcAvails of the half that sends,
    /// SinkAvails of the one that receives.
    pub adverts: usize,
}
