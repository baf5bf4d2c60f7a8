//! What an SDP machine does and leaves out: the correct one's is the default.

/// Each is looked at in one place of [`crate::sdp`], or of who serves its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SdpConduct {
    /// ChRcvBufAck does not wait for the smaller Private Buffers to be used up.
    pub(crate) acknowledges_early: bool,
    /// Messages that are sent beyond what the peer's window allows.
    pub(crate) overdraws: u16,
    /// SinkAvails are used, however stale.
    pub(crate) trusts_sink_avails: bool,
    /// The refusal of a ChRcvBuf is forgotten.
    pub(crate) repeats_request: bool,
    /// A ChRcvBuf for less does not bind its own sender before it is answered.
    pub(crate) keeps_size: bool,
    /// SrcAvails that cross a SinkAvail are read.
    pub(crate) reads_crossing: bool,
    /// Larger Private Buffers are posted where smaller ones were used up, and no sooner.
    pub(crate) renews_late: bool,
    /// SinkAvails are held against the first size of the Private Buffers.
    pub(crate) sinks_by_first_size: bool,
    /// MSeqAck is not held back after a SrcAvailCancel.
    pub(crate) never_holds_back: bool,
    /// SrcAvails are answered by SendSm, whatever the policy.
    pub(crate) never_reads: bool,
    /// Receives keep their memory when they have ended: looked at by who has it.
    pub(crate) keeps_memory: bool,
}
