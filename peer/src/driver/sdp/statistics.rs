//! A socket's statistics. Section numbers are those of the SDP draft.

use weft_core::wire::sdp::Mode;

use crate::sdp::TransferCounts;

/// A connection's state, and its counters since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// The half-connection on which this side sends.
    pub sending: HalfStatistics,
    /// The half-connection on which this side receives.
    pub receiving: HalfStatistics,
    /// Number of messages that this side may send now (section 10.2).
    pub credit: u16,
    /// Number of messages that the peer may send now, which is the credit that this side gave.
    pub credit_given: u16,
    /// Maximum size in bytes of a message that this side may send: the size of the peer's Private
    /// Buffers.
    pub message_limit: u32,
    /// Size in bytes of this side's Private Buffers.
    pub recv_size: u32,
    /// Number of bytes that are written and not sent yet.
    pub unsent: u64,
    /// Number of bytes that have arrived and were not read. Bytes in Private Buffers do not count.
    pub unread: u64,
    /// Number of bytes that this side copied: from the user, to the user, or between its own
    /// buffers for Bcopy.
    pub copied: u64,
}

/// One half-connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfStatistics {
    /// The Mode of this half-connection (section 11).
    pub mode: Mode,
    /// Transferred messages and bytes, for each mechanism.
    pub moved: TransferCounts,
    /// Number of this side's outstanding advertisements: SrcAvails if this side sends on this half,
    /// SinkAvails if this side receives on it.
    pub adverts: usize,
}
