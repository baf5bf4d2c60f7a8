//! What one peer of an SDP connection knows: its two half-connections, as Data Source of one and Data Sink of the other.
//!
//! Each message says in MSeqAck which messages its sender had received. Those are applied first ([`End::receives`]), then what
//! the message itself does ([`End::sends`]): so a peer is seen in exactly the state in which it sent. Letters are readings of
//! ambiguities that the draft leaves open; they are told where they matter.

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode};

use super::advert::{Advert, Adverts, End as Why, MOST_OPEN, take};
use super::before::{Mids, Moved};
use super::credits::reached;
use super::message::{Extension, Message, Setup};
use super::moved::Ranges;

/// A peer as Data Source: of what it sends.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The Mode of the half-connection; `None` where it is not known.
    pub mode: Option<Mode>,
    /// PotentialNonDiscards (section 9.5.1).
    pub potential_non_discards: u32,
    /// Its SrcAvails.
    pub adverts: Adverts,
    /// Octets of Data that SendSms asked for and that were not sent.
    pub owed: u64,
    /// The peer's SinkAvails that it may use, oldest first.
    pub usable: VecDeque<Advert>,
    /// MSeq of a SrcAvailCancel that nothing has settled.
    cancel: Option<u32>,
    /// MSeq of the ModeChange that left Pipelined Mode last, and PotentialNonDiscards then (readings C11, C12).
    left_pipelined: (u32, u32),
}

/// A peer as Data Sink: of what it receives.
#[derive(Debug, Clone, Default)]
pub struct Sink {
    /// The Mode of the half-connection; `None` where it is not known.
    pub mode: Option<Mode>,
    /// NonDiscards (section 6.3.3.4).
    pub non_discards: u32,
    /// Its SinkAvails whose NonDiscards were not what these books had.
    pub non_discards_differ: u64,
    /// Its SinkAvails.
    pub adverts: Adverts,
    /// Octets of Data that are to come because of its SendSms.
    pub awaited: u64,
    /// The peer's SrcAvails that it has not processed, oldest first.
    pub sources: VecDeque<Advert>,
    /// Messages with payload that it received.
    pub(crate) payloads: u64,
    /// Has it received a SrcAvailCancel that nothing has settled?
    canceled: bool,
}

/// A peer.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Octets of its receive Private Buffers.
    pub receive_size: Option<u32>,
    /// Advertisements that it can keep.
    pub max_adverts: Option<u16>,
    /// Of what it sends.
    pub source: Source,
    /// Of what it receives.
    pub sink: Sink,
    /// Out-Of-Band octets that it announced and did not send.
    pub oob_pending: u32,
    /// Its RdmaRdCompls, RdmaWrCompls and SendSms that no open advertisement explains.
    pub unmatched: u64,
    /// What its Hello or HelloAck said.
    pub(crate) setup: Option<Setup>,
    /// ChRcvBufs that it sent.
    pub(crate) resizes: u32,
    /// ChRcvBufAcks that it sent.
    pub(crate) resized: u32,
    /// The messages that it sent and that are in the capture.
    pub(crate) said: Mids,
    /// The messages that it received.
    pub(super) heard: Mids,
    /// What its RDMA Writes put, and no RdmaWrCompl told of.
    pub(super) writes: Ranges,
    /// What its RDMA Read Requests asked for, and no RdmaRdCompl told of.
    pub(super) reads: Ranges,
}

/// The advertisement that a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The frame that advertised.
    pub frame: u64,
    /// Octets of it that are left behind the message.
    pub left: u64,
}

impl End {
    pub(super) fn begin(&mut self) {
        self.source.mode = Some(Mode::Combined);
        self.sink.mode = Some(Mode::Combined);
    }

    /// What is known of both halves is not sure any more.
    pub(super) fn forget(&mut self) {
        self.source.mode = None;
        self.sink.mode = None;
        self.source.adverts.forget();
        self.sink.adverts.forget();
        self.source.usable.clear();
        self.sink.sources.clear();
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        let queues = self.source.usable.capacity() + self.sink.sources.capacity();
        let adverts = self.source.adverts.memory() + self.sink.adverts.memory();
        queues * size_of::<Advert>() + adverts + self.writes.memory() + self.reads.memory()
    }

    /// What RDMA moved for the oldest SinkAvail that it may use and the oldest SrcAvail that it has not processed.
    pub(super) fn moved(&self, usable: Option<Advert>, source: Option<Advert>) -> Option<Moved> {
        (!self.writes.is_lost() && !self.reads.is_lost()).then(|| {
            let asked = source.map_or(0, |advert| self.reads.within(&advert, advert.payload));
            let read = asked.saturating_sub(source.map_or(0, |advert| advert.told()));
            let in_process = !self.writes.is_empty() || read > 0 || self.reads.are_elsewhere(source.as_ref());
            Moved { written: usable.map_or(0, |advert| self.writes.within(&advert, 0)), read, in_process }
        })
    }

    /// It sends `message`; gives the advertisement that this is about. `Err` when there is too much to follow.
    pub(super) fn sends(&mut self, message: &Message) -> Result<Option<Subject>, ()> {
        if message.payload > 0 {
            self.source.pays(message.payload);
        }
        let (mut fits, mut subject) = (true, None);
        match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) => {
                let left = u64::from(len.saturating_sub(message.payload));
                fits = self.source.adverts.make(advert(message, left));
            }
            (Mid::SINK_AVAIL, Extension::Advert { len, non_discards, .. }) => {
                // What the Sink says is what counts; where it differs the books go on with it.
                self.sink.non_discards_differ += u64::from(self.sink.non_discards != non_discards);
                self.sink.non_discards = non_discards;
                fits = self.sink.adverts.make(advert(message, u64::from(len)));
            }
            (Mid::RDMA_WR_COMPL, Extension::Moved(len)) => {
                // It ends the SinkAvail, however much was moved (reading C16).
                let ended = self.source.usable.pop_front();
                subject = ended.map(|it| about(&it, it.left.saturating_sub(u64::from(len))));
                ended.inspect(|it| self.writes.forget(it));
            }
            (Mid::RDMA_RD_COMPL, Extension::Moved(len)) => {
                let oldest = self.sink.sources.front().copied();
                subject = oldest.map(|it| about(&it, it.left.saturating_sub(u64::from(len))));
                if take(&mut self.sink.sources, len) {
                    oldest.inspect(|it| self.reads.forget(it));
                }
            }
            (Mid::SEND_SM, _) => {
                let ended = if self.sink.canceled { usize::MAX } else { 1 };
                self.sink.sources.iter().take(ended).for_each(|it| self.reads.forget(it));
                subject = self.sink.sends_send_sm();
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: false }) => {
                if self.source.mode == Some(Mode::Pipelined) {
                    self.source.left_pipelined = (message.mseq, self.source.potential_non_discards);
                    self.source.usable.clear();
                }
                self.source.mode = Mode::from_value(mode).or(self.source.mode);
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: true }) => {
                self.sink.mode = Mode::from_value(mode).or(self.sink.mode);
            }
            (Mid::SRC_AVAIL_CANCEL, _) if !self.source.adverts.open().is_empty() => {
                self.source.cancel = Some(message.mseq);
            }
            (Mid::SINK_CANCEL_ACK, _) => self.source.usable.clear(),
            _ => {}
        }
        if subject.is_none() && matches!(message.mid, Mid::RDMA_WR_COMPL | Mid::RDMA_RD_COMPL | Mid::SEND_SM) {
            self.unmatched += 1;
        }
        if fits { Ok(subject) } else { Err(()) }
    }

    /// It has received `message` of the peer. `Err` when there is too much to follow.
    pub(super) fn receives(&mut self, message: &Message) -> Result<(), ()> {
        self.heard.add(message.mid);
        if message.payload > 0 {
            self.sink.takes(message.payload);
        }
        match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) => {
                if !self.sink.adverts.open().is_empty() {
                    // Crossing: the SinkAvail rules (section 11.3).
                    self.sink.sources.clear();
                } else if self.sink.sources.len() < MOST_OPEN {
                    let left = u64::from(len.saturating_sub(message.payload));
                    self.sink.sources.push_back(advert(message, left));
                } else {
                    return Err(());
                }
            }
            (Mid::SINK_AVAIL, Extension::Advert { len, .. }) => {
                return self.source.hears_of(advert(message, u64::from(len)));
            }
            (Mid::RDMA_WR_COMPL, _) => _ = self.sink.adverts.end_oldest(Why::Completed),
            (Mid::RDMA_RD_COMPL, Extension::Moved(len)) => self.source.adverts.moved(len),
            (Mid::SEND_SM, _) => self.source.receives_send_sm(message),
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: false }) => {
                if self.sink.mode == Some(Mode::Pipelined) {
                    self.sink.adverts.end_those(Why::Void, |_| true);
                }
                self.sink.mode = Mode::from_value(mode).or(self.sink.mode);
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: true }) => {
                self.source.mode = Mode::from_value(mode).or(self.source.mode);
            }
            (Mid::SRC_AVAIL_CANCEL, _) => self.sink.canceled = !self.sink.sources.is_empty(),
            (Mid::SINK_CANCEL_ACK, _) => self.sink.adverts.end_those(Why::Revoked, |_| true),
            (Mid::DIS_CONN, _) => self.sink.adverts.end_those(Why::Void, |_| true),
            _ => {}
        }
        if self.source.adverts.open().is_empty() {
            self.source.cancel = None;
        }
        Ok(())
    }
}

impl Source {
    /// It sends a message with payload; any does count (reading C13).
    fn pays(&mut self, octets: u32) {
        self.owed = self.owed.saturating_sub(u64::from(octets));
        self.potential_non_discards = self.potential_non_discards.wrapping_add(1);
        self.drop_stale();
    }

    /// Section 9.5.1, step 4, for the oldest SinkAvails.
    fn drop_stale(&mut self) {
        while self.usable.front().is_some_and(|oldest| oldest.non_discards != self.potential_non_discards) {
            self.usable.pop_front();
            self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
        }
    }

    /// A SinkAvail arrives.
    fn hears_of(&mut self, advert: Advert) -> Result<(), ()> {
        if self.mode == Some(Mode::Pipelined) {
            if self.usable.len() >= MOST_OPEN {
                return Err(());
            }
            self.usable.push_back(advert);
            self.drop_stale();
            if !self.usable.is_empty() {
                self.adverts.end_those(Why::Void, |_| true);
            }
            return Ok(());
        }
        // It was on its way when Pipelined Mode was left: counted against what was known then, and dropped (C12, C39).
        let (change, known) = &mut self.left_pipelined;
        if advert.non_discards == *known {
            let change = *change;
            self.adverts.end_those(Why::Void, |own| !reached(own.mseq, change));
        } else {
            *known = known.wrapping_sub(1);
            self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
        }
        Ok(())
    }

    fn receives_send_sm(&mut self, message: &Message) {
        if self.cancel.is_some_and(|cancel| reached(message.mseq_ack, cancel)) {
            // It settles the SrcAvailCancel and asks for nothing (reading C18).
            self.adverts.end_those(Why::Revoked, |_| true);
            self.cancel = None;
        } else if let Some(oldest) = self.adverts.end_oldest(Why::ByData) {
            self.owed = self.owed.saturating_add(oldest.left);
        }
    }
}

impl Sink {
    /// A message with payload arrives (section 9.5.1, step 1).
    fn takes(&mut self, octets: u32) {
        self.payloads += 1;
        self.awaited = self.awaited.saturating_sub(u64::from(octets));
        if self.adverts.end_oldest(Why::Stale).is_none() {
            self.non_discards = self.non_discards.wrapping_add(1);
        }
    }

    fn sends_send_sm(&mut self) -> Option<Subject> {
        let oldest = self.sources.pop_front()?;
        if std::mem::take(&mut self.canceled) {
            self.sources.clear();
        } else {
            self.awaited = self.awaited.saturating_add(oldest.left);
        }
        Some(about(&oldest, oldest.left))
    }
}

fn advert(message: &Message, left: u64) -> Advert {
    let (mseq, frame, payload) = (message.mseq, message.frame, message.payload);
    let (len, stag, va, non_discards) = match message.extension {
        Extension::Advert { len, stag, va, non_discards } => (len, stag, va, non_discards),
        _ => (0, 0, 0, 0),
    };
    Advert { mseq, frame, stag, va, len, payload, left, non_discards }
}

fn about(advert: &Advert, left: u64) -> Subject {
    Subject { frame: advert.frame, left }
}
