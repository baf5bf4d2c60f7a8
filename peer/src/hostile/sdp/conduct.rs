//! What an SDP machine does and leaves out: the correct one's is the default.

/// Each is looked at in one place of [`crate::sdp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SdpConduct {
    /// ChRcvBufAck does not wait for the smaller Private Buffers to be used up.
    pub(crate) acknowledges_early: bool,
    /// Messages that are sent beyond what the peer's window allows.
    pub(crate) overdraws: u16,
    /// SinkAvails are used, however stale.
    pub(crate) trusts_sink_avails: bool,
    /// MSeqAck is not held back behind a SrcAvailCancel.
    pub(crate) never_holds_back: bool,
}

deviations! {
    "sdp.ch-rcv-buf-ack-early" [SdpConduct(|conduct| conduct.acknowledges_early = true)]
        ["SDP-10.6-13"] "A ChRcvBufAck for more octets is sent while smaller Private Buffers are posted.";
    "sdp.overdraws-credit" [SdpConduct(|conduct| conduct.overdraws = 2)]
        ["SDP-10.5-6", "SDP-10.5-3", "SDP-10.5-1", "SDP-10.5-2", "SDP-10.5-7", "SDP-10.5-8", "SDP-10.2-1", "SDP-10.5-4", "SDP-10.5-5", "SDP-10.3-4"]
        "Two more messages are sent than the peer's window allows.";
    "sdp.payload-on-reserved-credit" [SdpConduct(|conduct| conduct.overdraws = 1)]
        ["SDP-10.5-8", "SDP-10.5-3", "SDP-10.5-1", "SDP-10.5-5"] "Payload is sent when two credits are left.";
    "sdp.trusts-stale-sink-avail" [SdpConduct(|conduct| conduct.trusts_sink_avails = true)]
        ["SDP-9.5.1-12", "SDP-9.5.1-3", "SDP-9.5.1-13", "SDP-9.5.1-8", "SDP-9.5.1-11", "SDP-9.5.2.2-2"] "A SinkAvail is used although Data sent before has made it stale.";
    "sdp.never-holds-back-mseq-ack" [SdpConduct(|conduct| conduct.never_holds_back = true)]
        ["SDP-9.5.4-5", "SDP-6.1.6-3"] "MSeqAck acknowledges a SrcAvailCancel that is not through.";
}
