//! The state that one peer of an SDP connection knows. The peer is the Data Source of one
//! half-connection and the Data Sink of the other.
//!
//! MSeqAck of each message shows which messages its sender had received. The monitor first applies
//! these received messages ([`End::receives`]), then the message itself ([`End::sends`]). Each
//! message is thus checked in exactly the state in which its sender was. Labels such as C16 name
//! interpretations of ambiguous passages in the draft.

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode};

use super::acts::{Acts, Done, Gone};
use super::advert::{Advert, Adverts, End as Why, MOST_OPEN, take};
use super::credits::reached;
use super::message::{Extension, Message, Setup};
use super::mids::Mids;
use super::moved::{Moved, Ranges};
use super::resize::Sizes;
use super::urgent::Urgent;

/// The state of a peer as Data Source: the peer that sends the payload of a half-connection.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The Mode of the half-connection; `None` if it is not known.
    pub mode: Option<Mode>,
    /// PotentialNonDiscards (section 9.5.1).
    pub potential_non_discards: u32,
    /// The SrcAvails that this peer sent.
    pub adverts: Adverts,
    /// Octets of Data that SendSms requested and that this peer has not sent.
    pub owed: u64,
    /// The received SinkAvails that this peer may use, oldest first.
    pub usable: VecDeque<Advert>,
    /// MSeq of this peer's SrcAvailCancel, if that is not settled.
    pub(super) cancel: Option<u32>,
    /// Whether this peer received a SinkAvailCancel and has not answered it.
    pub(super) cancel_due: bool,
    /// The value of `cancel_due` just after this peer's last message.
    pub(super) cancel_was_due: bool,
    /// Whether this peer, since its last message, received a SinkAvailCancel while it had no
    /// SinkAvail to give up.
    pub(super) idle_cancel: bool,
    /// MSeq of the last ModeChange that left Pipelined Mode, and PotentialNonDiscards at that time
    /// (interpretations C11, C12).
    left_pipelined: (u32, u32),
    /// Whether that ModeChange is not acknowledged.
    pub(super) leaves_pipelined: bool,
    /// Number of SinkAvails that arrived after that ModeChange. They are too late to be used.
    pub(super) late: u32,
    /// The Mode that this peer's last ModeChange left. `None` if the other peer has changed the
    /// Mode since.
    pub(super) left: Option<Mode>,
    /// The received SinkAvails that this peer may no longer use.
    pub(super) gone: Gone,
}

/// The state of a peer as Data Sink: the peer that receives the payload of a half-connection.
#[derive(Debug, Clone, Default)]
pub struct Sink {
    /// The Mode of the half-connection; `None` if it is not known.
    pub mode: Option<Mode>,
    /// NonDiscards (section 6.3.3.4).
    pub non_discards: u32,
    /// Number of SinkAvails whose NonDiscards differed from the monitor's count.
    pub non_discards_differ: u64,
    /// The SinkAvails that this peer sent.
    pub adverts: Adverts,
    /// Octets of Data that this peer's SendSms requested and that have not arrived.
    pub awaited: u64,
    /// The received SrcAvails that this peer has not completely processed, oldest first.
    pub sources: VecDeque<Advert>,
    /// Number of messages with payload that this peer received.
    pub(crate) payloads: u64,
    /// Whether this peer received a SrcAvailCancel that is not settled.
    pub(super) canceled: bool,
    /// The value of `canceled` just after this peer's last message.
    pub(super) was_canceled: bool,
    /// Whether this peer, since its last message, received a SrcAvailCancel while no SrcAvail was
    /// open.
    pub(super) idle_cancel: bool,
    /// Whether this peer sent a SinkAvailCancel that is not settled.
    pub(super) cancel: bool,
    /// Whether a ModeChange of the Data Source left Pipelined Mode.
    pub(super) left_pipelined: bool,
    /// The received SrcAvails that this peer no longer processes.
    pub(super) gone: Gone,
}

/// The state of one peer.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Size of this peer's receive Private Buffers, in octets.
    pub receive_size: Option<u32>,
    /// Number of advertisements that this peer can keep (MaxAdverts).
    pub max_adverts: Option<u16>,
    /// The half-connection of which this peer is the Data Source.
    pub source: Source,
    /// The half-connection of which this peer is the Data Sink.
    pub sink: Sink,
    /// Number of Out-Of-Band octets that this peer announced and did not send.
    pub oob_pending: u32,
    /// Number of RdmaRdCompls, RdmaWrCompls and SendSms that this peer sent without an open
    /// advertisement.
    pub unmatched: u64,
    /// The fields of this peer's Hello or HelloAck.
    pub(crate) setup: Option<Setup>,
    /// Number of ChRcvBufs that this peer sent.
    pub(crate) resizes: u32,
    /// Number of ChRcvBufAcks that this peer sent.
    pub(crate) resized: u32,
    /// The types of the captured messages that this peer sent.
    pub(crate) sent: Mids,
    /// The types of the messages that this peer received.
    pub(super) received: Mids,
    /// Octets that this peer's RDMA Writes moved and that no RdmaWrCompl has reported.
    pub(super) writes: Ranges,
    /// Octets that this peer's RDMA Reads requested. Octets of a SrcAvail that has ended are
    /// removed.
    pub(super) reads: Ranges,
    /// The part of `reads` that Read Responses have returned.
    pub(super) returned: Ranges,
    /// Unanswered Read Requests, oldest first: STag, TO, and length in octets.
    pub(super) read_requests: VecDeque<(u32, u64, u32)>,
    /// The highest MSeqAck + Bufs that this peer received.
    pub(super) granted: Option<u32>,
    /// Number of buffers that this peer announced in Hello or HelloAck, less the buffer that the
    /// HelloAck uses.
    pub(super) posted: u32,
    /// Whether this peer is the Accepting Peer.
    pub(super) accepting: bool,
    /// The sizes of receive Private Buffers that this peer knows.
    pub(super) sizes: Sizes,
    /// The Out-Of-Band octets of this peer.
    pub(super) urgent: Urgent,
    /// RDMA Writes and Reads of this peer since its last message.
    pub(super) acts: Acts,
}

/// The advertisement that a message completes or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The frame of the advertisement.
    pub frame: u64,
    /// Octets of the advertised buffer that are left after the message.
    pub left: u64,
}

impl End {
    pub(super) fn begin(&mut self) {
        self.source.mode = Some(Mode::Combined);
        self.sink.mode = Some(Mode::Combined);
    }

    /// Drops the state of both half-connections, because it is no longer certain.
    pub(super) fn forget(&mut self) {
        self.source.mode = None;
        self.sink.mode = None;
        self.source.adverts.forget();
        self.sink.adverts.forget();
        self.source.usable.clear();
        self.sink.sources.clear();
        self.acts.clear();
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        let queues = self.source.usable.capacity() + self.sink.sources.capacity();
        let adverts = self.source.adverts.memory() + self.sink.adverts.memory();
        let moved = self.writes.memory() + self.reads.memory() + self.returned.memory();
        let gone = self.source.gone.memory() + self.sink.gone.memory() + self.urgent.memory();
        queues * size_of::<Advert>() + adverts + moved + gone
    }

    /// Returns the octets that RDMA moved for `usable`, the oldest usable SinkAvail, and `source`,
    /// the oldest SrcAvail that is not completely processed. `None` if segments are missing.
    pub(super) fn moved(&self, usable: Option<Advert>, source: Option<Advert>) -> Option<Moved> {
        (!self.writes.is_lost() && !self.reads.is_lost()).then(|| {
            let requested = source.map_or(0, |advert| self.reads.within(&advert, advert.payload));
            let read = requested.saturating_sub(source.map_or(0, |advert| advert.reported()));
            let came = source.map_or(0, |it| self.returned.within(&it, it.payload).saturating_sub(it.reported()));
            let (writing, reading) = (!self.writes.is_empty(), read > 0 || self.reads.are_elsewhere(source.as_ref()));
            Moved {
                written: usable.map_or(0, |advert| self.writes.within(&advert, 0)),
                read,
                returned: (!self.returned.is_lost()).then_some(came),
                in_process: writing || reading,
                writing,
            }
        })
    }

    /// Summarises the RDMA Writes and Reads of this peer since its last message.
    pub(super) fn done(&self) -> Done {
        self.acts.done(&self.source.usable, &self.sink.sources, [&self.source.gone, &self.sink.gone])
    }

    /// Applies `message`, which this peer sends. Returns the advertisement that the message
    /// completes or ends. Returns an error if there are too many advertisements to follow.
    pub(super) fn sends(&mut self, message: &Message) -> Result<Option<Subject>, ()> {
        if message.payload > 0 {
            self.source.pays(message.payload);
        }
        self.urgent.sends(message);
        self.sizes.sends(message);
        self.acts.clear();
        let (mut fits, mut subject) = (true, None);
        match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) => {
                let left = u64::from(len.saturating_sub(message.payload));
                fits = self.source.adverts.make(advert(message, left));
            }
            (Mid::SINK_AVAIL, Extension::Advert { len, non_discards, .. }) => {
                // If the Data Sink's count differs, the monitor adopts it.
                self.sink.non_discards_differ += u64::from(self.sink.non_discards != non_discards);
                self.sink.non_discards = non_discards;
                fits = self.sink.adverts.make(advert(message, u64::from(len)));
            }
            (Mid::RDMA_WR_COMPL, Extension::Moved(len)) => {
                // RdmaWrCompl ends the SinkAvail, even if octets are left (interpretation C16).
                let ended = self.source.usable.pop_front();
                subject = ended.map(|it| about(&it, it.left.saturating_sub(u64::from(len))));
                ended.inspect(|it| {
                    self.writes.forget(it);
                    self.source.gone.add(it, Why::Completed);
                });
            }
            (Mid::RDMA_RD_COMPL, Extension::Moved(len)) => {
                let oldest = self.sink.sources.front().copied();
                subject = oldest.map(|it| about(&it, it.left.saturating_sub(u64::from(len))));
                if take(&mut self.sink.sources, len) {
                    oldest.inspect(|it| self.ends_source(it, Why::Completed));
                    self.sink.canceled &= !self.sink.sources.is_empty();
                }
            }
            (Mid::SEND_SM, _) => {
                let (ended, why) = if self.sink.canceled { (usize::MAX, Why::Revoked) } else { (1, Why::ByData) };
                let sources: Vec<Advert> = self.sink.sources.iter().take(ended).copied().collect();
                sources.iter().for_each(|it| self.ends_source(it, why));
                subject = self.sink.sends_send_sm();
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: false }) => {
                if self.source.mode == Some(Mode::Pipelined) {
                    self.source.leave_pipelined(message);
                }
                self.source.left = self.source.mode;
                self.source.mode = Mode::from_value(mode).or(self.source.mode);
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: true }) => {
                self.sink.mode = Mode::from_value(mode).or(self.sink.mode);
            }
            (Mid::SRC_AVAIL_CANCEL, _) if !self.source.adverts.open().is_empty() => {
                self.source.cancel = Some(message.mseq);
            }
            (Mid::SINK_AVAIL_CANCEL, _) => self.sink.cancel = !self.sink.adverts.open().is_empty(),
            (Mid::SINK_CANCEL_ACK, _) => {
                self.source.gone.all(&self.source.usable, Why::Revoked);
                self.source.usable.clear();
                self.source.cancel_due = false;
            }
            _ => {}
        }
        self.source.cancel_was_due = self.source.cancel_due;
        self.sink.was_canceled = self.sink.canceled;
        (self.source.idle_cancel, self.sink.idle_cancel) = (false, false);
        if subject.is_none() && matches!(message.mid, Mid::RDMA_WR_COMPL | Mid::RDMA_RD_COMPL | Mid::SEND_SM) {
            self.unmatched += 1;
        }
        if fits { Ok(subject) } else { Err(()) }
    }

    /// Applies `message`, which this peer received. `edge` is the highest MSeq for which this peer
    /// had announced a buffer. Returns an error if there are too many advertisements to follow.
    pub(super) fn receives(&mut self, message: &Message, edge: u32) -> Result<(), ()> {
        self.received.add(message.mid);
        let granted = message.mseq_ack.wrapping_add(u32::from(message.bufs));
        if self.granted.is_none_or(|before| reached(granted, before)) {
            self.granted = Some(granted);
        }
        self.sizes.receives(message, edge, self.accepting);
        self.source.leaves_pipelined &= !reached(message.mseq_ack, self.source.left_pipelined.0);
        if message.payload > 0 {
            self.sink.takes(message.payload);
        }
        match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) => {
                if !self.sink.adverts.open().is_empty() {
                    // SrcAvail and SinkAvail cross, and the SinkAvail wins (section 11.3).
                    self.sink.gone.all(&self.sink.sources, Why::Void);
                    self.sink.gone.add(&advert(message, 0), Why::Void);
                    self.sink.sources.clear();
                } else if self.sink.sources.len() < MOST_OPEN {
                    let left = u64::from(len.saturating_sub(message.payload));
                    self.sink.sources.push_back(advert(message, left));
                } else {
                    return Err(());
                }
            }
            (Mid::SINK_AVAIL, Extension::Advert { len, .. }) => {
                let void = self.source.adverts.octets();
                let fits = self.source.receives_sink_avail(advert(message, u64::from(len)));
                self.urgent.takes_back(void - self.source.adverts.octets());
                fits?;
            }
            (Mid::RDMA_WR_COMPL, _) => _ = self.sink.adverts.end_oldest(Why::Completed),
            (Mid::RDMA_RD_COMPL, Extension::Moved(len)) => self.source.adverts.moved(len),
            (Mid::SEND_SM, _) => {
                let open = self.source.adverts.octets();
                self.source.receives_send_sm(message);
                self.urgent.takes_back(open - self.source.adverts.octets());
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: false }) => {
                if self.sink.mode == Some(Mode::Pipelined) {
                    self.sink.adverts.end_those(Why::Void, |_| true);
                    self.sink.left_pipelined = true;
                }
                self.sink.mode = Mode::from_value(mode).or(self.sink.mode);
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: true }) => {
                self.source.mode = Mode::from_value(mode).or(self.source.mode);
                self.source.left = None;
            }
            (Mid::SINK_AVAIL_CANCEL, _) => {
                self.source.idle_cancel = self.source.usable.is_empty();
                self.source.cancel_due |= !self.source.idle_cancel;
            }
            (Mid::SRC_AVAIL_CANCEL, _) => {
                self.sink.idle_cancel = self.sink.sources.is_empty();
                self.sink.canceled = !self.sink.idle_cancel;
            }
            (Mid::SINK_CANCEL_ACK, _) => self.sink.adverts.end_those(Why::Revoked, |_| true),
            (Mid::DIS_CONN, _) => self.sink.adverts.end_those(Why::Void, |_| true),
            _ => {}
        }
        if self.source.adverts.open().is_empty() {
            self.source.cancel = None;
        }
        self.sink.cancel &= !self.sink.adverts.open().is_empty();
        Ok(())
    }

    /// Records that this peer has finished with a received SrcAvail.
    fn ends_source(&mut self, advert: &Advert, why: Why) {
        self.reads.forget(advert);
        self.returned.forget(advert);
        self.sink.gone.add(advert, why);
    }
}

impl Source {
    /// Records that this peer sends a message with payload. A message of any type counts
    /// (interpretation C13).
    fn pays(&mut self, octets: u32) {
        self.owed = self.owed.saturating_sub(u64::from(octets));
        self.potential_non_discards = self.potential_non_discards.wrapping_add(1);
        self.drop_stale();
    }

    /// Drops the oldest SinkAvails that are stale (section 9.5.1, step 4).
    fn drop_stale(&mut self) {
        while let Some(oldest) = self.usable.front().copied()
            && oldest.non_discards != self.potential_non_discards
        {
            self.usable.pop_front();
            self.gone.add(&oldest, Why::Stale);
            self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
        }
    }

    /// Processes a received SinkAvail.
    fn receives_sink_avail(&mut self, advert: Advert) -> Result<(), ()> {
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
        self.late = self.late.saturating_add(1);
        self.gone.add(&advert, Why::Void);
        // The SinkAvail was in transit when this peer left Pipelined Mode. It is compared with the
        // PotentialNonDiscards of that time, and dropped (interpretations C12, C39).
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

    fn leave_pipelined(&mut self, message: &Message) {
        self.left_pipelined = (message.mseq, self.potential_non_discards);
        self.leaves_pipelined = true;
        self.late = 0;
        self.gone.all(&self.usable, Why::Void);
        self.usable.clear();
    }

    fn receives_send_sm(&mut self, message: &Message) {
        if self.cancel.is_some_and(|cancel| reached(message.mseq_ack, cancel)) {
            // The SendSm settles the SrcAvailCancel and requests no Data (interpretation C18).
            self.adverts.end_those(Why::Revoked, |_| true);
            self.cancel = None;
        } else if let Some(oldest) = self.adverts.end_oldest(Why::ByData) {
            self.owed = self.owed.saturating_add(oldest.left);
        }
    }
}

impl Sink {
    /// Processes a received message with payload (section 9.5.1, step 1).
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
