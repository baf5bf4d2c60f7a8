//! Stores the state of a sender just before it sent a message.
//!
//! In this state, the sender has received all messages that the new message acknowledges. Rules
//! compare the new message with this state, not with the state after the message. For example, the
//! Mode before a ModeChange decides which peer may send the ModeChange.

use weft_core::wire::sdp::Mode;

use super::advert::{Advert, EndReason};
use super::mids::Mids;
use super::moved_octets::MovedOctets;
use super::oob::OobSummary;
use super::rdma_use::RdmaUseSummary;
use super::resize::Sizes;
use super::sdp_peer::SdpPeer;

/// A summary of the open advertisements of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AdvertSummary {
    /// Number of open advertisements.
    pub count: usize,
    /// The oldest open advertisement.
    pub oldest: Option<Advert>,
}

impl AdvertSummary {
    fn new<'a>(adverts: impl IntoIterator<Item = &'a Advert, IntoIter: ExactSizeIterator>) -> Self {
        let mut adverts = adverts.into_iter();
        AdvertSummary { count: adverts.len(), oldest: adverts.next().copied() }
    }
}

/// The state of a sender just before it sent a message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderState {
    /// MSeq of the sender's previous message; `None` for the first message after Hello and
    /// HelloAck.
    pub mseq: Option<u32>,
    /// MSeqAck of the sender's previous message; `None` for the first message.
    pub mseq_ack: Option<u32>,
    /// The highest MSeqAck + Bufs in the sender's messages after Hello and HelloAck.
    pub edge: Option<u32>,
    /// Number of Out-Of-Band octets that the sender had announced, but not sent.
    pub oob_pending: u32,
    /// The types of the captured messages that the sender had sent.
    pub sent: Mids,
    /// Whether the sender holds MSeqAck back because of a SrcAvailCancel (section 9.5.4 of the SDP
    /// draft). If so, it is possible that the sender has received more messages than it
    /// acknowledges.
    pub held_back: bool,
    /// Whether the fields below are certain. If false, these fields have no meaning.
    pub certain: bool,
    /// The types of the messages that the sender had received.
    pub received: Mids,
    /// The Mode of the half-connection of which the sender is the Data Source.
    pub source_mode: Option<Mode>,
    /// The Mode of the half-connection of which the sender is the Data Sink.
    pub sink_mode: Option<Mode>,
    /// The sender's own SrcAvails.
    pub src_avails: AdvertSummary,
    /// The sender's own SinkAvails.
    pub sink_avails: AdvertSummary,
    /// The peer's SrcAvails that the sender has not completely processed.
    pub sources: AdvertSummary,
    /// The peer's SinkAvails that the sender may use.
    pub usable: AdvertSummary,
    /// Number of octets that the sender still had to send as Data, because its peer requested them
    /// by SendSm messages.
    pub owed: u64,
    /// Number of octets that the sender requested as Data by SendSm messages, and that have not
    /// arrived.
    pub awaited: u64,
    /// NonDiscards of the half-connection of which the sender is the Data Sink.
    pub non_discards: u32,
    /// Number of messages with payload that the sender had received.
    pub payloads: u64,
    /// Octets that RDMA moved for the sender; `None` if segments are missing.
    pub moved: Option<MovedOctets>,
    /// RDMA Writes and Reads after the sender's previous message. Empty if segments are missing.
    pub rdma_use: RdmaUseSummary,
    /// The sizes of receive Private Buffers that the sender knows.
    pub sizes: Sizes,
    /// Size of the sender's own receive Private Buffers, in octets.
    pub receive_size: Option<u32>,
    /// The sender's Out-Of-Band octets.
    pub oob: OobSummary,
    /// The highest MSeq for which the peer announced a buffer; `None` if this is not certain.
    pub granted: Option<u32>,
    /// SrcAvailCancels and SinkAvailCancels that are not settled (see [`super::sdp_peer`]).
    pub cancels: Cancels,
    /// How the sender reached its Modes.
    pub changes: ModeHistory,
    /// Why the latest ended SinkAvail of the peer ended.
    pub last_usable: Option<EndReason>,
    /// Why the latest ended SrcAvail of the peer ended.
    pub last_source: Option<EndReason>,
}

/// SrcAvailCancels and SinkAvailCancels that are not settled (see [`super::sdp_peer`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cancels {
    /// Whether the sender's own SrcAvailCancel is not settled.
    pub src_avail: bool,
    /// Whether the sender's own SinkAvailCancel is not settled.
    pub sink_avail: bool,
    /// Whether the sender received a SrcAvailCancel that is not settled.
    pub src_avail_received: bool,
    /// The value of `src_avail_received` just after the sender's previous message.
    pub src_avail_was_received: bool,
    /// Whether the sender received a SrcAvailCancel after its previous message, at a time when no
    /// SrcAvail was open.
    pub src_avail_idle: bool,
    /// Whether the sender received a SinkAvailCancel that is not settled.
    pub sink_avail_received: bool,
    /// The value of `sink_avail_received` just after the sender's previous message.
    pub sink_avail_was_received: bool,
    /// Whether the sender received a SinkAvailCancel after its previous message, at a time when it
    /// had no usable SinkAvail.
    pub sink_avail_idle: bool,
}

/// How the sender reached its Modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ModeHistory {
    /// On the half-connection on which the sender is the Data Source: the Mode before the sender's
    /// last ModeChange. `None` if the peer changed the Mode after this ModeChange.
    pub previous_mode: Option<Mode>,
    /// On the same half-connection: whether the sender's ModeChange from Pipelined Mode is not
    /// acknowledged yet.
    pub leaves_pipelined: bool,
    /// Number of SinkAvails that arrived after the ModeChange from Pipelined Mode. The sender must
    /// not use these SinkAvails any more.
    pub late: u32,
    /// On the half-connection on which the sender is the Data Sink: whether a ModeChange of the
    /// Data Source left Pipelined Mode.
    pub sink_left_pipelined: bool,
}

impl SenderState {
    /// Records MSeq and MSeqAck of the sender's previous message.
    pub(super) fn record_numbers(&mut self, before: Option<(u32, u32)>) {
        (self.mseq, self.mseq_ack) = (before.map(|(mseq, _)| mseq), before.map(|(_, mseq_ack)| mseq_ack));
    }

    /// Records the state of the sender `peer`.
    pub(super) fn record(&mut self, peer: &SdpPeer) {
        let (source, sink) = (&peer.source, &peer.sink);
        let usable = AdvertSummary::new(&source.usable);
        let sources = AdvertSummary::new(&sink.sources);
        *self = SenderState {
            certain: true,
            received: peer.received,
            source_mode: source.mode,
            sink_mode: sink.mode,
            src_avails: AdvertSummary::new(source.adverts.open()),
            sink_avails: AdvertSummary::new(sink.adverts.open()),
            sources,
            usable,
            owed: source.owed,
            awaited: sink.awaited,
            non_discards: sink.non_discards,
            payloads: sink.payloads,
            moved: peer.moved(usable.oldest, sources.oldest),
            rdma_use: if peer.writes.is_incomplete() || peer.reads.is_incomplete() {
                RdmaUseSummary::default()
            } else {
                peer.rdma_use_summary()
            },
            sizes: peer.sizes,
            oob: peer.oob.summary(),
            granted: peer.granted,
            cancels: Cancels {
                src_avail: source.cancel.is_some(),
                sink_avail: sink.cancel,
                src_avail_received: sink.canceled,
                src_avail_was_received: sink.was_canceled,
                src_avail_idle: sink.idle_cancel,
                sink_avail_received: source.cancel_due,
                sink_avail_was_received: source.cancel_was_due,
                sink_avail_idle: source.idle_cancel,
            },
            changes: ModeHistory {
                previous_mode: source.previous_mode,
                leaves_pipelined: source.leaves_pipelined,
                late: source.late,
                sink_left_pipelined: sink.left_pipelined,
            },
            last_usable: source.ended_adverts.last_reason(),
            last_source: sink.ended_adverts.last_reason(),
            ..*self
        };
    }
}
