//! The sender of a message as it was when it sent it.
//!
//! By then it had received all that the message acknowledges; the message itself was not sent. Rules judge a message by this, and
//! not by the books behind it: who may change a Mode, for instance, is decided by the Mode before.

use weft_core::wire::sdp::{Mid, Mode};

use super::advert::Advert;
use super::end::End;

/// Messages of the draft, by MID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mids(u32);

impl Mids {
    /// Is `mid` among them?
    pub(crate) fn has(self, mid: Mid) -> bool {
        self.0 & bit(mid) != 0
    }

    pub(super) fn add(&mut self, mid: Mid) {
        self.0 |= bit(mid);
    }
}

/// MIDs 0x00 to 0x0E and 0xFD to 0xFF have a bit each.
fn bit(mid: Mid) -> u32 {
    match mid.0 {
        low @ ..=0x0e => 1 << low,
        high @ 0xfd.. => 1 << (high - 0xfd + 16),
        _ => 0,
    }
}

/// Advertisements of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Glance {
    /// How many are open.
    pub count: usize,
    /// The oldest of them.
    pub oldest: Option<Advert>,
}

impl Glance {
    fn at<'a>(adverts: impl IntoIterator<Item = &'a Advert, IntoIter: ExactSizeIterator>) -> Self {
        let mut adverts = adverts.into_iter();
        Glance { count: adverts.len(), oldest: adverts.next().copied() }
    }
}

/// The sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    /// MSeq of its message before this one, none for the first behind Hello and HelloAck.
    pub mseq: Option<u32>,
    /// MSeqAck of that message.
    pub mseq_ack: Option<u32>,
    /// The highest MSeqAck + Bufs of its messages behind Hello and HelloAck.
    pub edge: Option<u32>,
    /// Out-Of-Band octets that it had announced and not sent.
    pub oob_pending: u32,
    /// The messages that it had sent. Those that the capture misses are not among them.
    pub said: Mids,
    /// Does it hold MSeqAck back because of a SrcAvailCancel (section 9.5.4)? Then it may have received more than it acknowledges.
    pub held_back: bool,
    /// Is all that follows sure? Where it is not, it holds nothing.
    pub certain: bool,
    /// The messages that it had received.
    pub heard: Mids,
    /// The Mode of the half-connection whose Data Source it is.
    pub source_mode: Option<Mode>,
    /// The Mode of the half-connection whose Data Sink it is.
    pub sink_mode: Option<Mode>,
    /// Its own SrcAvails.
    pub src_avails: Glance,
    /// Its own SinkAvails.
    pub sink_avails: Glance,
    /// The peer's SrcAvails that it has not processed.
    pub sources: Glance,
    /// The peer's SinkAvails that it may use.
    pub usable: Glance,
    /// Octets of Data that SendSms asked it for and that were not sent.
    pub owed: u64,
    /// Octets of Data that are to come because of its SendSms.
    pub awaited: u64,
    /// NonDiscards of the half-connection whose Data Sink it is.
    pub non_discards: u32,
    /// PotentialNonDiscards of the other one.
    pub potential_non_discards: u32,
    /// Messages with payload that it received.
    pub payloads: u64,
    /// What RDMA moved; `None` where segments are missing.
    pub moved: Option<Moved>,
}

/// Octets that RDMA moved for the sender of a message, and that no message of it has told of yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moved {
    /// Octets that its RDMA Writes put into the buffer of `usable.oldest`.
    pub written: u64,
    /// Octets that its RDMA Reads asked for from the buffer of `sources.oldest`, those told of and payload left out.
    pub read: u64,
    /// Has it written or asked for any octets, wherever, of which no RdmaWrCompl or RdmaRdCompl told?
    pub in_process: bool,
}

impl Before {
    /// Takes `end` down.
    pub(super) fn note(&mut self, end: &End) {
        let (source, sink) = (&end.source, &end.sink);
        let usable = Glance::at(&source.usable);
        let sources = Glance::at(&sink.sources);
        *self = Before {
            certain: true,
            heard: end.heard,
            source_mode: source.mode,
            sink_mode: sink.mode,
            src_avails: Glance::at(source.adverts.open()),
            sink_avails: Glance::at(sink.adverts.open()),
            sources,
            usable,
            owed: source.owed,
            awaited: sink.awaited,
            non_discards: sink.non_discards,
            potential_non_discards: source.potential_non_discards,
            payloads: sink.payloads,
            moved: end.moved(usable.oldest, sources.oldest),
            ..*self
        };
    }
}
