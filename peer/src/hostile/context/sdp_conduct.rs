//! Flags for additional or missing actions of an SDP state machine.

/// Flags that change the actions of an SDP state machine. The default is the correct state machine.
/// [`crate::sdp`], or the driver of the state machine, reads each flag in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SdpConduct {
    /// ChRcvBufAck is sent although some of the smaller Private Buffers are not used up yet.
    pub(crate) acknowledges_early: bool,
    /// Number of messages that are sent although no credit is available for them.
    pub(crate) overdraws: u16,
    /// Stale SinkAvails are used.
    pub(crate) trusts_sink_avails: bool,
    /// After the peer refused a ChRcvBuf, this side sends another ChRcvBuf in the same direction.
    pub(crate) repeats_request: bool,
    /// After a ChRcvBuf for a smaller size, messages keep the larger size until the answer arrives.
    pub(crate) keeps_size: bool,
    /// If a SrcAvail crosses a SinkAvail, this side reads the bytes that the SrcAvail advertises.
    pub(crate) reads_crossing: bool,
    /// Larger Private Buffers are posted only in place of smaller buffers that are used up.
    pub(crate) renews_late: bool,
    /// SinkAvails are limited by the first size of the Private Buffers instead of their current
    /// size.
    pub(crate) sinks_by_first_size: bool,
    /// MSeqAck is not held back after a SrcAvailCancel.
    pub(crate) never_holds_back: bool,
    /// SendSm is the answer to every SrcAvail, even if the policy requires another answer.
    pub(crate) never_reads: bool,
    /// Data that Bcopy transfers does not wait until all SrcAvails are Processed.
    pub(crate) overtakes: bool,
    /// A suspension does not reset NonDiscards.
    pub(crate) keeps_non_discards: bool,
    /// The memory of a receive stays registered after the receive has ended. The owner of the
    /// memory reads this flag.
    pub(crate) keeps_memory: bool,
    /// When the peer closes TCP, this side sends a DisConn before it closes TCP, even if the peer
    /// has sent no DisConn. The owner of the Queue Pair reads this flag.
    pub(crate) answers_fin: bool,
}
