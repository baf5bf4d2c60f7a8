//! The state of a sender just before it sent a message.
//!
//! By then it had received all that the message acknowledges, and had not yet sent the message.
//! Rules compare a message with this state, not with the state after it. For example, the Mode
//! before a ModeChange decides who may send it.

use weft_core::wire::sdp::Mode;

use super::acts::Done;
use super::advert::{Advert, End as Why};
use super::end::End;
use super::mids::Mids;
use super::moved::Moved;
use super::resize::Sizes;
use super::urgent::Announced;

/// A summary of the advertisements of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Glance {
    /// How many are open.
    pub count: usize,
    /// The oldest open one.
    pub oldest: Option<Advert>,
}

impl Glance {
    fn at<'a>(adverts: impl IntoIterator<Item = &'a Advert, IntoIter: ExactSizeIterator>) -> Self {
        let mut adverts = adverts.into_iter();
        Glance { count: adverts.len(), oldest: adverts.next().copied() }
    }
}

/// The sender's state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    /// MSeq of its previous message; none for the first message after Hello and HelloAck.
    pub mseq: Option<u32>,
    /// MSeqAck of that message.
    pub mseq_ack: Option<u32>,
    /// The highest MSeqAck + Bufs of its messages after Hello and HelloAck.
    pub edge: Option<u32>,
    /// Announced Out-Of-Band octets that it had not sent.
    pub oob_pending: u32,
    /// The messages that it had sent, without those that the capture misses.
    pub sent: Mids,
    /// Does it hold MSeqAck back because of a SrcAvailCancel (section 9.5.4)? It may then have
    /// received more than it acknowledges.
    pub held_back: bool,
    /// Are the fields below certain? If not, they have no meaning.
    pub certain: bool,
    /// The messages that it had received.
    pub received: Mids,
    /// The Mode of the half-connection of which it is the Data Source.
    pub source_mode: Option<Mode>,
    /// The Mode of the half-connection of which it is the Data Sink.
    pub sink_mode: Option<Mode>,
    /// Its own SrcAvails.
    pub src_avails: Glance,
    /// Its own SinkAvails.
    pub sink_avails: Glance,
    /// The peer's SrcAvails that it has not processed.
    pub sources: Glance,
    /// The peer's SinkAvails that it may use.
    pub usable: Glance,
    /// Octets of Data that SendSms requested and that it had not sent.
    pub owed: u64,
    /// Octets of Data that its SendSms requested and that have not come.
    pub awaited: u64,
    /// NonDiscards of the half-connection of which it is the Data Sink.
    pub non_discards: u32,
    /// Messages with payload that it received.
    pub payloads: u64,
    /// Octets that RDMA moved; `None` if segments are missing.
    pub moved: Option<Moved>,
    /// Its RDMA since its last message; empty if segments are missing.
    pub done: Done,
    /// Sizes of buffers that it knows.
    pub sizes: Sizes,
    /// Octets of its own receive Private Buffers.
    pub receive_size: Option<u32>,
    /// Its Out-Of-Band octets.
    pub urgent: Announced,
    /// The highest MSeq that the peer's buffers allow; `None` if that is not certain.
    pub granted: Option<u32>,
    /// The state of its cancels.
    pub cancels: Cancels,
    /// How it reached its Modes.
    pub changes: Changes,
    /// Why the last of the peer's SinkAvails ended that it may no longer use.
    pub last_usable: Option<Why>,
    /// Why the last of the peer's SrcAvails ended that it no longer processes.
    pub last_source: Option<Why>,
}

/// Cancels that are not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cancels {
    /// Its own SrcAvailCancel.
    pub src_avail: bool,
    /// Its own SinkAvailCancel.
    pub sink_avail: bool,
    /// A SrcAvailCancel that it has received.
    pub src_avail_received: bool,
    /// The same when it sent its last message.
    pub src_avail_was_received: bool,
    /// A SrcAvailCancel since then with nothing to cancel.
    pub src_avail_idle: bool,
    /// A SinkAvailCancel that it has received.
    pub sink_avail_received: bool,
    /// The same when it sent its last message.
    pub sink_avail_was_received: bool,
    /// A SinkAvailCancel since then with nothing to give up.
    pub sink_avail_idle: bool,
}

/// How a peer reached its Modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Changes {
    /// The Mode that it left last as Data Source, by its own ModeChange.
    pub left: Option<Mode>,
    /// Is its ModeChange from Pipelined to Combined Mode not acknowledged?
    pub leaves_pipelined: bool,
    /// SinkAvails that came after that ModeChange, and so too late.
    pub late: u32,
    /// Did a ModeChange make it, as Data Sink, leave Pipelined Mode?
    pub sink_left_pipelined: bool,
}

impl Before {
    /// Records the state of `end`.
    pub(super) fn note(&mut self, end: &End) {
        let (source, sink) = (&end.source, &end.sink);
        let usable = Glance::at(&source.usable);
        let sources = Glance::at(&sink.sources);
        *self = Before {
            certain: true,
            received: end.received,
            source_mode: source.mode,
            sink_mode: sink.mode,
            src_avails: Glance::at(source.adverts.open()),
            sink_avails: Glance::at(sink.adverts.open()),
            sources,
            usable,
            owed: source.owed,
            awaited: sink.awaited,
            non_discards: sink.non_discards,
            payloads: sink.payloads,
            moved: end.moved(usable.oldest, sources.oldest),
            done: if end.writes.is_lost() || end.reads.is_lost() { Done::default() } else { end.done() },
            sizes: end.sizes,
            urgent: end.urgent.announced(),
            granted: end.granted,
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
            changes: Changes {
                left: source.left,
                leaves_pipelined: source.leaves_pipelined,
                late: source.late,
                sink_left_pipelined: sink.left_pipelined,
            },
            last_usable: source.gone.last(),
            last_source: sink.gone.last(),
            ..*self
        };
    }
}
