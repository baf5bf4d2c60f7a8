//! The state that one peer of an SDP connection knows. The peer is the Data Source of one
//! half-connection, and the Data Sink of the other half-connection.
//!
//! The MSeqAck of a message shows which messages the sender of the message had received. The
//! monitor first applies these received messages ([`SdpPeer::apply_received`]), and then the
//! message itself ([`SdpPeer::apply_sent`]). Therefore each message is checked in exactly the state
//! that its sender had. If the draft is ambiguous, a comment explains weft's interpretation. A
//! SrcAvailCancel or a SinkAvailCancel is **settled** when all advertisements that it cancels have
//! ended.

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode};

use super::advert::{Advert, AffectedAdvert, EndReason, MAX_OPEN, affected_advert, reported, take_octets};
use super::credits::reached;
use super::data_sink::Sink;
use super::data_source::Source;
use super::message::{Extension, Message, Setup};
use super::mids::Mids;
use super::moved_octets::{AccessedRanges, MovedOctets};
use super::oob::OobState;
use super::rdma_use::{RdmaUse, RdmaUseSummary};
use super::resize::Sizes;

/// The state of one peer.
#[derive(Debug, Clone, Default)]
pub struct SdpPeer {
    /// Size of this peer's receive Private Buffers, in octets.
    pub receive_size: Option<u32>,
    /// Number of advertisements that this peer can keep (MaxAdverts).
    pub max_adverts: Option<u16>,
    /// The half-connection of which this peer is the Data Source.
    pub source: Source,
    /// The half-connection of which this peer is the Data Sink.
    pub sink: Sink,
    /// Number of Out-Of-Band octets that this peer announced, but has not sent.
    pub oob_pending: u32,
    /// Number of RdmaRdCompl, RdmaWrCompl and SendSm messages that this peer sent without an open
    /// advertisement.
    pub unmatched: u64,
    /// The fields of this peer's Hello or HelloAck.
    pub(crate) setup: Option<Setup>,
    /// Number of ChRcvBufs that this peer sent.
    pub(crate) resize_requests: u32,
    /// Number of ChRcvBufAcks that this peer sent.
    pub(crate) resize_answers: u32,
    /// The types of the captured messages that this peer sent.
    pub(crate) sent: Mids,
    /// The types of the messages that this peer received.
    pub(super) received: Mids,
    /// Octets that this peer's RDMA Writes moved, and that no RdmaWrCompl has reported.
    pub(super) writes: AccessedRanges,
    /// Octets that this peer's RDMA Reads requested. When a SrcAvail ends, its octets are removed.
    pub(super) reads: AccessedRanges,
    /// The part of `reads` that Read Responses have returned.
    pub(super) returned: AccessedRanges,
    /// Unanswered Read Requests, oldest first: STag, TO, and length in octets.
    pub(super) read_requests: VecDeque<(u32, u64, u32)>,
    /// The highest MSeqAck + Bufs that this peer received.
    pub(super) granted: Option<u32>,
    /// Number of buffers that this peer announced in Hello or HelloAck. The buffer that the
    /// HelloAck uses is not counted.
    pub(super) posted: u32,
    /// Whether this peer is the Accepting Peer.
    pub(super) accepting: bool,
    /// The sizes of receive Private Buffers that this peer knows.
    pub(super) sizes: Sizes,
    /// The Out-Of-Band octets of this peer.
    pub(super) oob: OobState,
    /// RDMA Writes and Reads that this peer sent after its last message.
    pub(super) rdma_use: RdmaUse,
}

impl SdpPeer {
    pub(super) fn start(&mut self) {
        self.source.mode = Some(Mode::Combined);
        self.sink.mode = Some(Mode::Combined);
    }

    /// Drops the state of both half-connections, because it is no longer certain.
    pub(super) fn clear_half_connections(&mut self) {
        self.source.mode = None;
        self.sink.mode = None;
        self.source.adverts.clear();
        self.sink.adverts.clear();
        self.source.usable.clear();
        self.sink.sources.clear();
        self.rdma_use.clear();
    }

    /// Memory in use, in octets.
    pub(super) fn memory(&self) -> usize {
        let queues = self.source.usable.capacity() + self.sink.sources.capacity();
        let adverts = self.source.adverts.memory() + self.sink.adverts.memory();
        let moved = self.writes.memory() + self.reads.memory() + self.returned.memory();
        let ended = self.source.ended_adverts.memory() + self.sink.ended_adverts.memory() + self.oob.memory();
        queues * size_of::<Advert>() + adverts + moved + ended
    }

    /// Returns the octets that RDMA moved for two advertisements: `usable` is the oldest usable
    /// SinkAvail, and `source` is the oldest SrcAvail that is not completely processed. Returns
    /// `None` if segments are missing.
    pub(super) fn moved(&self, usable: Option<Advert>, source: Option<Advert>) -> Option<MovedOctets> {
        (!self.writes.is_incomplete() && !self.reads.is_incomplete()).then(|| {
            let requested = source.map_or(0, |advert| self.reads.octets_within(&advert, advert.payload));
            let read = requested.saturating_sub(source.map_or(0, |advert| advert.reported()));
            let came =
                source.map_or(0, |it| self.returned.octets_within(&it, it.payload).saturating_sub(it.reported()));
            let mut unreported = self.sink.sources.iter().skip(self.sink.last_rd_compl.unwrap_or(0));
            let reading = match self.sink.last_rd_compl {
                None => read > 0 || self.reads.has_range_outside(source.as_ref()),
                Some(_) => unreported.any(|source| self.reads.has_stag(|stag| stag == source.stag)),
            };
            let writing = self.writes.has_stag(|stag| self.source.expects_completion(stag));
            MovedOctets {
                written: usable.map_or(0, |advert| self.writes.octets_within(&advert, 0)),
                read,
                returned: (!self.returned.is_incomplete()).then_some(came),
                in_process: writing || reading,
                writing,
            }
        })
    }

    /// Returns whether this peer has written to a buffer and has not reported the octets. Then this
    /// peer considers its own SrcAvails void.
    pub(crate) fn has_unreported_writes(&self) -> bool {
        self.writes.has_stag(|_| true)
    }

    /// Returns whether this peer has sent a SinkAvailCancel, if `write` is set, or a SrcAvailCancel,
    /// and this cancel is not settled.
    pub(crate) fn has_open_cancel(&self, write: bool) -> bool {
        if write { self.sink.cancel } else { self.source.cancel.is_some() }
    }

    /// Summarises the RDMA Writes and Reads that this peer sent after its last message.
    pub(super) fn rdma_use_summary(&self) -> RdmaUseSummary {
        self.rdma_use.summary(
            &self.source.usable,
            &self.sink.sources,
            [&self.source.ended_adverts, &self.sink.ended_adverts],
        )
    }

    /// Applies `message`, which this peer sends. Returns the advertisement that the message
    /// completes or ends. If there are too many advertisements to track, returns an error.
    pub(super) fn apply_sent(&mut self, message: &Message) -> Result<Option<AffectedAdvert>, ()> {
        if message.payload > 0 {
            self.source.record_payload_sent(message.payload);
        }
        self.oob.record_sent(message);
        self.sizes.record_sent(message);
        self.rdma_use.clear();
        let (mut fits, mut affected) = (true, None);
        match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) => {
                let left = u64::from(len.saturating_sub(message.payload));
                fits = self.source.adverts.add(advert(message, left));
            }
            (Mid::SINK_AVAIL, Extension::Advert { len, non_discards, .. }) => {
                // If the count of the Data Sink differs from the monitor's count, the monitor uses
                // the count of the Data Sink.
                self.sink.non_discards_differ += u64::from(self.sink.non_discards != non_discards);
                self.sink.non_discards = non_discards;
                fits = self.sink.adverts.add(advert(message, u64::from(len)));
            }
            (Mid::RDMA_WR_COMPL, Extension::Moved(len)) => {
                // RdmaWrCompl ends the SinkAvail, even if octets are left (weft's interpretation of
                // the draft).
                self.source.wr_compl_follows = true;
                let ended = self.source.usable.pop_front();
                affected = ended.map(|it| affected_advert(&it, it.left.saturating_sub(u64::from(len))));
                ended.inspect(|it| {
                    self.writes.remove_overlapping(it);
                    self.source.ended_adverts.add(it, EndReason::Completed);
                });
            }
            (Mid::RDMA_RD_COMPL, Extension::Moved(len)) => {
                let at = reported(&self.sink.sources, message.invalidates);
                let source = self.sink.sources.get(at).copied();
                affected = source.map(|it| affected_advert(&it, it.left.saturating_sub(u64::from(len))));
                let ends = take_octets(&mut self.sink.sources, at, len);
                self.sink.last_rd_compl = Some(usize::from(!ends && at == 0));
                if ends {
                    source.inspect(|it| self.end_source(it, EndReason::Completed));
                    self.sink.canceled &= !self.sink.sources.is_empty();
                }
            }
            (Mid::SEND_SM, _) => {
                let (ended, reason) =
                    if self.sink.canceled { (usize::MAX, EndReason::Revoked) } else { (1, EndReason::ByData) };
                self.sink.last_rd_compl = self.sink.last_rd_compl.map(|_| 0);
                let sources: Vec<Advert> = self.sink.sources.iter().take(ended).copied().collect();
                sources.iter().for_each(|it| self.end_source(it, reason));
                affected = self.sink.apply_sent_send_sm();
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: false }) => {
                let before = self.source.mode;
                self.source.previous_mode = before;
                self.source.mode = next_mode(before, mode, false);
                if (before, self.source.mode) == (Some(Mode::Pipelined), Some(Mode::Combined)) {
                    self.source.leave_pipelined(message);
                }
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: true }) => {
                self.sink.mode = next_mode(self.sink.mode, mode, true);
            }
            (Mid::SRC_AVAIL_CANCEL, _) if !self.source.adverts.open().is_empty() => {
                self.source.cancel = Some(message.mseq);
            }
            (Mid::SINK_AVAIL_CANCEL, _) => self.sink.cancel = !self.sink.adverts.open().is_empty(),
            (Mid::SINK_CANCEL_ACK, _) => {
                self.source.ended_adverts.add_all(&self.source.usable, EndReason::Revoked);
                self.source.usable.clear();
                self.source.cancel_due = false;
            }
            _ => {}
        }
        self.source.cancel_was_due = self.source.cancel_due;
        self.sink.was_canceled = self.sink.canceled;
        (self.source.idle_cancel, self.sink.idle_cancel) = (false, false);
        if affected.is_none() && matches!(message.mid, Mid::RDMA_WR_COMPL | Mid::RDMA_RD_COMPL | Mid::SEND_SM) {
            self.unmatched += 1;
        }
        if fits { Ok(affected) } else { Err(()) }
    }

    /// Applies `message`, which this peer received. `edge` is the highest MSeq for which this peer
    /// had announced a buffer. If there are too many advertisements to track, returns an error.
    pub(super) fn apply_received(&mut self, message: &Message, edge: u32) -> Result<(), ()> {
        self.received.add(message.mid);
        let granted = message.mseq_ack.wrapping_add(u32::from(message.bufs));
        if self.granted.is_none_or(|before| reached(granted, before)) {
            self.granted = Some(granted);
        }
        self.sizes.record_received(message, edge, self.accepting);
        self.source.leaves_pipelined &=
            self.source.left_pipelined.is_some_and(|(change, _)| !reached(message.mseq_ack, change));
        if message.payload > 0 {
            self.sink.record_payload_received(message.payload);
        }
        match (message.mid, message.extension) {
            (Mid::SRC_AVAIL, Extension::Advert { len, .. }) => {
                if !self.sink.adverts.open().is_empty() {
                    // A SrcAvail and a SinkAvail cross. The SinkAvail is valid, and the SrcAvail is
                    // void (section 11.3).
                    self.sink.ended_adverts.add_all(&self.sink.sources, EndReason::Void);
                    self.sink.ended_adverts.add(&advert(message, 0), EndReason::Void);
                    self.sink.sources.clear();
                } else if self.sink.sources.len() < MAX_OPEN {
                    let left = u64::from(len.saturating_sub(message.payload));
                    self.sink.sources.push_back(advert(message, left));
                } else {
                    return Err(());
                }
            }
            (Mid::SINK_AVAIL, Extension::Advert { len, .. }) => {
                let void = self.source.adverts.octets();
                let fits = self.source.apply_received_sink_avail(advert(message, u64::from(len)));
                self.oob.subtract(void - self.source.adverts.octets());
                fits?;
            }
            (Mid::RDMA_WR_COMPL, _) => _ = self.sink.adverts.end_oldest(EndReason::Completed),
            (Mid::RDMA_RD_COMPL, Extension::Moved(len)) => self.source.adverts.record_moved(len, message.invalidates),
            (Mid::SEND_SM, _) => {
                let open = self.source.adverts.octets();
                self.source.apply_received_send_sm(message);
                self.oob.subtract(open - self.source.adverts.octets());
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: false }) => {
                let before = self.sink.mode;
                self.sink.mode = next_mode(before, mode, false);
                if (before, self.sink.mode) == (Some(Mode::Pipelined), Some(Mode::Combined)) {
                    self.sink.adverts.end_matching(EndReason::Void, |_| true);
                    self.sink.left_pipelined = true;
                }
            }
            (Mid::MODE_CHANGE, Extension::Mode { mode, s: true }) => {
                self.source.mode = next_mode(self.source.mode, mode, true);
                self.source.previous_mode = None;
            }
            (Mid::SINK_AVAIL_CANCEL, _) => {
                self.source.idle_cancel = self.source.usable.is_empty();
                self.source.cancel_due |= !self.source.idle_cancel;
            }
            (Mid::SRC_AVAIL_CANCEL, _) => {
                self.sink.idle_cancel = self.sink.sources.is_empty();
                self.sink.canceled = !self.sink.idle_cancel;
            }
            (Mid::SINK_CANCEL_ACK, _) => self.sink.adverts.end_matching(EndReason::Revoked, |_| true),
            (Mid::DIS_CONN, _) => self.sink.adverts.end_matching(EndReason::Void, |_| true),
            _ => {}
        }
        if self.source.adverts.open().is_empty() {
            self.source.cancel = None;
        }
        self.sink.cancel &= !self.sink.adverts.open().is_empty();
        Ok(())
    }

    /// Records that this peer no longer uses a received SrcAvail.
    fn end_source(&mut self, advert: &Advert, reason: EndReason) {
        self.reads.remove_overlapping(advert);
        self.returned.remove_overlapping(advert);
        self.sink.ended_adverts.add(advert, reason);
    }
}

/// Returns the Mode of a half-connection after a ModeChange with the value `mode`, if the Mode before
/// is `now`. The result is `None` if the value is reserved, or if the sender must not send the
/// ModeChange in this Mode. Section 12 of the SDP draft does not define the Mode after such a
/// ModeChange.
fn next_mode(now: Option<Mode>, mode: u8, by_sink: bool) -> Option<Mode> {
    let to = Mode::from_value(mode)?;
    let is_defined = match (now, to) {
        (Some(Mode::Buffered), Mode::Combined) => by_sink,
        (Some(Mode::Combined), Mode::Buffered | Mode::Pipelined) | (Some(Mode::Pipelined), Mode::Combined) => !by_sink,
        (Some(now), to) => now == to,
        (None, _) => true,
    };
    is_defined.then_some(to)
}

fn advert(message: &Message, left: u64) -> Advert {
    let (mseq, frame, payload) = (message.mseq, message.frame, message.payload);
    let (len, stag, va, non_discards) = match message.extension {
        Extension::Advert { len, stag, va, non_discards } => (len, stag, va, non_discards),
        _ => (0, 0, 0, 0),
    };
    Advert { mseq, frame, stag, va, len, payload, left, non_discards }
}
