//! Deviations that add or omit actions of the SDP state machine.

deviations! {
    "sdp.ch-rcv-buf-ack-early" [SdpConduct(|conduct| conduct.acknowledges_early = true)]
        ["SDP-10.6-13"] "sends a ChRcvBufAck for larger Private Buffers while smaller Private Buffers are posted";
    "sdp.ch-rcv-buf-again" [SdpConduct(|conduct| conduct.repeats_request = true)]
        ["SDP-10.6-17", "SDP-10.6-18"] "sends another ChRcvBuf for larger (or smaller) Private Buffers after the peer has refused such a change";
    "sdp.ch-rcv-buf-for-the-peer-only" [SdpConduct(|conduct| conduct.keeps_size = true)]
        ["SDP-10.6-2"] "sends messages of the old size after it has sent a ChRcvBuf for a smaller size, until the peer answers";
    "sdp.data-overtakes-src-avail" [SdpConduct(|conduct| conduct.overtakes = true)]
        ["SDP-11.2-6", "SDP-11-10", "SDP-11.2-8", "SDP-11.3-8", "SDP-11-15"] "sends the data of a small send while the SrcAvail of an earlier send is open";
    "sdp.dis-conn-after-fin" [SdpConduct(|conduct| conduct.answers_fin = true)]
        ["SDP-8.2.2-3", "SDP-8.2.2-5"] "sends a DisConn after the peer has closed TCP without a DisConn";
    "sdp.larger-private-buffers-late" [SdpConduct(|conduct| conduct.renews_late = true)]
        ["SDP-10.6.2-2"] "posts larger Private Buffers only when the smaller Private Buffers are used up";
    "sdp.reads-crossing-src-avail" [SdpConduct(|conduct| conduct.reads_crossing = true)]
        ["SDP-11.3-20", "SDP-11.3-21", "SDP-9.5.2.1-4"] "reads the data of a SrcAvail that crosses a SinkAvail";
    "sdp.sink-avail-by-first-size" [SdpConduct(|conduct| conduct.sinks_by_first_size = true)]
        ["SDP-10.6-16", "SDP-9.3-2", "SDP-9-1", "SDP-9.5.1-1", "SDP-9.5.1-2", "SDP-10-2", "SDP-10-9"] "limits a SinkAvail by the first size of the Private Buffers, not by the current size";
    "sdp.non-discards-kept-after-suspension" [SdpConduct(|conduct| conduct.keeps_non_discards = true)]
        ["SDP-6.3.3.4-1", "SDP-9.3-5"] "does not reset NonDiscards for the new connection after a suspension";
    "sdp.overdraws-credit" [SdpConduct(|conduct| conduct.overdraws = 2)]
        ["SDP-10.5-6", "SDP-10.5-3", "SDP-10.5-1", "SDP-10.5-2", "SDP-10.5-7", "SDP-10.5-8", "SDP-10.2-1", "SDP-10.5-4", "SDP-10.5-5", "SDP-10.3-4"]
        "sends two more messages than its credit allows";
    "sdp.payload-on-reserved-credit" [SdpConduct(|conduct| conduct.overdraws = 1)]
        ["SDP-10.5-8", "SDP-10.5-3", "SDP-10.5-1", "SDP-10.5-5"] "sends payload when only two credits are left";
    "sdp.trusts-stale-sink-avail" [SdpConduct(|conduct| conduct.trusts_sink_avails = true)]
        ["SDP-9.5.1-12", "SDP-9.5.1-3", "SDP-9.5.1-13", "SDP-9.5.1-8", "SDP-9.5.1-11", "SDP-9.5.2.2-2", "SDP-11.3-14"] "uses a SinkAvail that earlier Data has made stale";
    "sdp.never-reads" [SdpConduct(|conduct| conduct.never_reads = true)]
        ["SDP-9-7"] "never reads the data of a SrcAvail, and answers each SrcAvail with a SendSm";
    "sdp.never-holds-back-mseq-ack" [SdpConduct(|conduct| conduct.never_holds_back = true)]
        ["SDP-9.5.4-5", "SDP-6.1.6-3"] "acknowledges a SrcAvailCancel in MSeqAck before it has processed the SrcAvailCancel";
}
