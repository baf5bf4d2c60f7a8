//! The state of an SDP connection. The state contains what each peer knows about the two
//! half-connections, the credits and the advertisements. The state also contains how the connection
//! ends.
//!
//! The monitor tracks what each of the two peers can know (sections 12 to 14 of the SDP draft, see
//! `sdp_peer`). This module does not check rules. In every start-up sequence, the state begins with
//! the Hello. The Hello is in streaming mode or in private data.
//!
//! **Uncertain state is not reported.** If an MSeq is not the previous MSeq plus one, or if headers
//! were not captured, messages may be missing in the capture. In this case, the Modes are unknown
//! until the next ModeChange. Advertisements and NonDiscards are unknown until the connection ends.
//! Credits, and the opening and closing of the connection, are still reported. The same applies
//! after a message that does not show what its sender knows, for example if MSeqAck decreases.
//!
//! **Memory** is bounded. For each peer, the state has at most `MAX_UNACKNOWLEDGED` messages that
//! the other peer has not acknowledged, and at most `advert::MAX_OPEN` advertisements of each kind.
//! If a limit is exceeded, the monitor no longer tracks advertisements. For each half-connection,
//! at most [`MAX_MODE_CHANGES`] changes of the Mode are listed.

mod advert;
mod closing;
mod credits;
mod data_sink;
mod data_source;
mod message;
mod mids;
mod moved_octets;
mod numbers;
mod oob;
mod profile;
mod rdma_use;
mod resize;
mod sdp_peer;
mod sender_state;
mod sends;
#[cfg(test)]
mod tests;
mod unexplained;

use std::collections::VecDeque;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::wire::sdp::{FieldOrder, Mid, Mode, RawBsdh, RawHeader, RawModeChange};

pub use advert::{Advert, Adverts, AffectedAdvert};
pub(crate) use advert::{EndReason, MAX_LEN};
pub use closing::{Closing, State, Suspension};
pub use credits::Credits;
pub(crate) use credits::reached;
pub use data_sink::Sink;
pub use data_source::Source;
pub(crate) use message::Setup;
pub use profile::Profile;
pub(crate) use rdma_use::{RdmaAccess, UnadvertisedAccess};
pub use sdp_peer::SdpPeer;
pub(crate) use sender_state::SenderState;
pub(crate) use sends::SdpSend;
use unexplained::{UnexplainedAccess, UnexplainedActions};

use super::connection::Connection;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::parse::{Carrier, Location, Unit};
use crate::part::Part;
use message::{Extension, Message};
use resize::LargerBuffers;
use sends::Sends;

/// Maximum number of messages of a peer that are kept until the other peer acknowledges them.
const MAX_UNACKNOWLEDGED: usize = 4096;
/// Maximum number of Mode changes that are listed for each half-connection.
pub const MAX_MODE_CHANGES: usize = 32;

/// A change of the Mode of a half-connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeChange {
    /// The frame of the ModeChange.
    pub frame: FrameNumber,
    /// The new Mode; `None` for a reserved value.
    pub mode: Option<Mode>,
}

/// The changes of a half-connection's Mode.
#[derive(Debug, Clone, Default)]
pub struct ModeChanges {
    /// Number of ModeChanges.
    pub count: u64,
    /// The first ModeChanges, at most [`MAX_MODE_CHANGES`].
    pub listed: Vec<ModeChange>,
}

/// Facts about the latest message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latest {
    /// The direction of the message.
    pub direction: Direction,
    /// The advertisement that the message completes or ends.
    pub affected_advert: Option<AffectedAdvert>,
    /// Whether the message is a Data message without payload (section 10.4).
    pub gratuitous: bool,
    /// Whether the message is the HelloAck.
    pub hello_ack: bool,
    /// The sender's state just before the message.
    pub(crate) sender_state: SenderState,
    /// The Send that carried the message; `None` for a message in streaming mode or private data.
    pub(crate) send: Option<SdpSend>,
    /// The field order of the message, if this order differs from the order of the connection.
    pub(crate) other_order: Option<FieldOrder>,
}

/// A message that the receiver has not acknowledged yet.
#[derive(Debug, Clone, Copy)]
struct UnacknowledgedMessage {
    message: Message,
    /// The highest MSeqAck + Bufs of the receiver at the time when the message was sent. So when
    /// the message arrived, the receiver had offered at least this credit.
    edge: u32,
}

/// The state of one SDP connection. Arrays have one element for each direction. If an element is
/// about a peer, this is the peer that sends in the direction.
#[derive(Debug, Clone, Default)]
pub struct SdpState {
    /// The direction of the Hello. In this direction, the Connecting Peer sends.
    pub connecting: Direction,
    /// Whether the Hello came in streaming mode or in private data.
    pub carrier: Carrier,
    /// The start-up sequence; `None` until start-up frames, or the HelloAck, show the sequence.
    pub profile: Option<Profile>,
    /// Stream position after the first octet of the HelloAck.
    pub(crate) hello_ack_end: Option<u64>,
    /// The messages that begin and end the connection.
    pub closing: Closing,
    /// The state of each peer.
    pub peers: [SdpPeer; 2],
    /// The credit of each peer.
    pub credits: [Credits; 2],
    /// The Mode of each half-connection, as far as the Mode Master (the peer that may change the
    /// Mode) knows it; `None` if the Mode is not known. The index is the direction of the Data
    /// Source.
    pub modes: [Option<Mode>; 2],
    /// The Mode changes of each half-connection. The index is the direction of the Data Source.
    pub changes: [ModeChanges; 2],
    /// Whether all messages of both peers were read. The value is final only at the end of the
    /// connection.
    pub(crate) complete: bool,
    /// The Connecting Peer's first message after the Hello: its frame, and the location of its
    /// header.
    pub(crate) first_message: Option<(FrameNumber, Location)>,
    /// Whether advertisements and NonDiscards are certain.
    pub certain: bool,
    /// Facts about the latest message.
    pub latest: Latest,
    /// The messages of each peer that the other peer has not acknowledged.
    unacknowledged: [VecDeque<UnacknowledgedMessage>; 2],
    /// MSeq and MSeqAck of each direction's latest message; `None` before the first message after
    /// Hello and HelloAck.
    numbers: [Option<(u32, u32)>; 2],
    /// The highest MSeqAck + Bufs in each direction's messages after Hello and HelloAck.
    edges: [Option<u32>; 2],
    /// For each direction, whether MSeqAck was 0 in the message that set the value in `edges`.
    edges_at_zero: [bool; 2],
    /// MSeq of each direction's latest SrcAvailCancel.
    canceled: [Option<u32>; 2],
    /// For each direction, whether its first MSeq was 0 and not 1.
    counts_from_zero: [bool; 2],
    /// Whether the effect of an MSeqAck of 0 is unknown. If a peer counts MSeq from 0, an MSeqAck
    /// of 0 acknowledges either the peer's first message or no message. The effect is unknown if
    /// the message with this MSeqAck, or the first message, is not Data.
    zero_is_unclear: bool,
    sends: [Sends; 2],
    /// For each peer: accesses and messages that no message of the other peer explains so far.
    pub(crate) unexplained: [UnexplainedActions; 2],
}

impl SdpState {
    /// Creates the state of a connection whose Hello came in `direction`.
    pub(crate) fn begin(direction: Direction, carrier: Carrier) -> Self {
        SdpState {
            connecting: direction,
            carrier,
            peers: Direction::BOTH.map(|sender| SdpPeer { accepting: sender != direction, ..SdpPeer::default() }),
            complete: true,
            certain: true,
            ..SdpState::default()
        }
    }

    /// Memory in use, in octets.
    pub(crate) fn memory(&self) -> usize {
        let waiting: usize = self.unacknowledged.iter().map(VecDeque::capacity).sum();
        size_of::<Self>()
            + waiting * size_of::<UnacknowledgedMessage>()
            + self.peers.iter().map(SdpPeer::memory).sum::<usize>()
    }

    /// Processes a message at stream position `position`.
    pub(crate) fn record_message(
        &mut self,
        direction: Direction,
        (carrier, order, part): (Carrier, FieldOrder, Part<'_>),
        (frame, position, header): (FrameNumber, u64, Location),
        connection: &Connection,
    ) {
        self.latest = Latest { direction, ..Latest::default() };
        self.latest.sender_state.sent = self.peers[direction].sent;
        self.latest.sender_state.receive_size = self.peers[direction].receive_size;
        self.latest.sender_state.oob_pending = self.peers[direction].oob_pending;
        self.latest.send = self.sends[direction].latest().filter(|_| carrier == Carrier::Send);
        if carrier == Carrier::Send {
            self.latest.other_order = message::other_order(part, order, self.closing.hello_ack.is_some());
        }
        let order = self.latest.other_order.unwrap_or(order);
        let Some(message) = Message::read(part, order, (frame, header)) else {
            let before = self.numbers[direction].take();
            self.latest.sender_state.record_numbers(before);
            self.sends[direction].record_unreadable(part.is_complete());
            return self.record_unreadable_message();
        };
        let invalidates = self.latest.send.and_then(|send| send.invalidates);
        let message = Message { invalidates, ..message };
        self.latest.gratuitous = message.is_gratuitous();
        self.latest.hello_ack = message.mid == Mid::HELLO_ACK;
        if self.latest.hello_ack && direction != self.connecting {
            self.hello_ack_end.get_or_insert(position + 1);
        }
        self.closing.sent(direction, &message);
        self.set_up(direction, &message, connection);
        let peer = direction.peer();
        self.credits[peer].header(message.bufs, message.mseq_ack);
        self.credits[peer].gratuitous += u64::from(message.is_gratuitous());
        self.count_oob(direction, &message);
        if carrier != Carrier::Send || matches!(message.mid, Mid::HELLO | Mid::HELLO_ACK) {
            return;
        }
        if direction == self.connecting {
            self.first_message.get_or_insert((frame, header));
        }
        if self.closing.hello_ack.is_none() {
            // Either a message is missing, or the monitor processes the directions out of order.
            self.drop_uncertain_state();
        }
        self.credits[direction].sent(message.mseq);
        self.check_numbers(direction, &message);
        self.record_mode_change(direction, &message);
        self.apply(direction, &message);
        // If octets follow the extended header of a ModeChange, it is not known which octets are the
        // Mode.
        let is_unclear = message.mid == Mid::MODE_CHANGE && part.len() > RawBsdh::LEN + RawModeChange::LEN;
        if self.certain && (self.replay(direction, &message).is_err() || is_unclear) {
            self.drop_uncertain_state();
        }
    }

    /// Applies those effects of a message that take place when the message is sent.
    fn apply(&mut self, direction: Direction, message: &Message) {
        let own = &mut self.peers[direction];
        own.sent.add(message.mid);
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, _) => own.resize_requests += 1,
            (Mid::CH_RCV_BUF_ACK, _) => own.resize_answers += 1,
            (mid @ (Mid::SRC_AVAIL | Mid::SINK_AVAIL), Extension::Advert { stag, .. }) => {
                self.unexplained[direction.peer()].record_advert(stag, mid == Mid::SINK_AVAIL);
            }
            _ => {}
        }
    }

    /// Ends the connection. Assumes that each peer has received all messages.
    pub(crate) fn finish(&mut self) {
        for direction in Direction::BOTH {
            while self.certain
                && let Some(UnacknowledgedMessage { message, .. }) = self.unacknowledged[direction].pop_front()
            {
                let edge = self.edges[direction.peer()].unwrap_or_default();
                if self.peers[direction.peer()].apply_received(&message, edge).is_err() {
                    self.drop_uncertain_state();
                }
            }
        }
    }

    /// A peer must not use a SinkAvail after its own SinkCancelAck has ended this SinkAvail.
    /// Returns the first RDMA Write of `direction` that uses such a SinkAvail. Only RDMA Writes
    /// after the sender's last message are considered. If a later advertisement has the same STag,
    /// the RDMA Write is not returned, even if the sender did not know this advertisement.
    pub(crate) fn write_after_cancel_ack(&self, direction: Direction) -> Option<RdmaAccess> {
        let (own, peer) = (&self.peers[direction], &self.peers[direction.peer()]);
        let is_open = |stag: u32| {
            let usable = own.source.usable.iter().map(|advert| advert.stag);
            usable.chain(peer.sink.adverts.open().iter().map(|advert| advert.stag)).any(|open| open == stag)
        };
        let is_canceled =
            |stag: u32| own.source.ended_adverts.reason_of(stag) == Some(EndReason::Revoked) && !is_open(stag);
        own.rdma_use.find(|access| self.certain && access.write && is_canceled(access.stag))
    }

    /// Drops uncertain state, because messages are missing.
    fn drop_uncertain_state(&mut self) {
        self.certain = false;
        self.modes = [None; 2];
        self.latest.sender_state.certain = false;
        self.unexplained.iter_mut().for_each(|unexplained| unexplained.rdma.clear());
        self.peers.iter_mut().for_each(SdpPeer::clear_half_connections);
        self.unacknowledged.iter_mut().for_each(VecDeque::clear);
    }

    fn set_up(&mut self, direction: Direction, message: &Message, connection: &Connection) {
        if self.profile.is_none() {
            self.profile = Profile::of(self.carrier, self.connecting, self.closing.hello_ack.is_some(), connection);
        }
        match message.extension {
            Extension::Setup(setup) => {
                let own = &mut self.peers[direction];
                (own.max_adverts, own.receive_size) = (Some(setup.max_adverts), Some(setup.receive_size));
                own.setup = Some(setup);
                // The HelloAck uses one buffer of the Connecting Peer.
                own.posted = u32::from(message.bufs).saturating_sub(u32::from(message.mid == Mid::HELLO));
                let other = &mut self.peers[direction.peer()];
                (other.granted, other.sizes.peer) = (Some(message.bufs.into()), Some(setup.receive_size));
                if message.mid == Mid::HELLO_ACK && self.numbers != [None; 2] {
                    // The HelloAck is late: the monitor has already processed messages that were
                    // sent after it.
                    self.drop_uncertain_state();
                } else if message.mid == Mid::HELLO_ACK && self.certain {
                    self.peers.iter_mut().for_each(SdpPeer::start);
                    self.modes = [Some(Mode::Combined); 2];
                }
            }
            Extension::Size(size) if message.mid == Mid::CH_RCV_BUF_ACK => {
                let own = &mut self.peers[direction];
                if let Some(before) = own.receive_size.replace(size).filter(|before| size < *before) {
                    let edge = message.mseq_ack.wrapping_add(u32::from(message.bufs));
                    own.sizes.larger = Some(LargerBuffers { octets: before, edge });
                }
            }
            _ => {}
        }
    }

    /// Counts Out-Of-Band octets. After the announcement of an octet, the octet is pending until a
    /// Data message carries it (section 9.5.3).
    fn count_oob(&mut self, direction: Direction, message: &Message) {
        let pending = &mut self.peers[direction].oob_pending;
        *pending = pending.saturating_add(u32::from(message.flags.oob_pend));
        if message.mid == Mid::DATA && message.flags.oob_pres {
            *pending = pending.saturating_sub(1);
        }
    }

    fn record_mode_change(&mut self, direction: Direction, message: &Message) {
        let Extension::Mode { mode, s } = message.extension else { return };
        let (half, mode) = (if s { direction.peer() } else { direction }, Mode::from_value(mode));
        self.modes[half] = mode.or(self.modes[half]);
        let changes = &mut self.changes[half];
        changes.count += 1;
        if changes.listed.len() < MAX_MODE_CHANGES {
            changes.listed.push(ModeChange { frame: message.frame, mode });
        }
    }

    /// Processes a DDP segment of `direction` whose octets are trustworthy.
    pub(crate) fn record_segment(&mut self, direction: Direction, view: &SegmentView<'_>, unit: &Unit<'_>) {
        self.sends[direction].record_segment(view, unit);
        let peer = direction.peer();
        let (write, stag, to, len) = match (view.opcode(), view.segment) {
            (Opcode::WRITE, Segment::Tagged(header, _)) => {
                (true, header.stag.get(), header.tagged_offset.get(), view.payload_len)
            }
            (Opcode::READ_REQUEST, Segment::Untagged(..)) => {
                let request = view.payload.all().and_then(|octets| ReadRequest::parse(octets).ok());
                let Some(request) = request else { return self.peers[direction].reads.record_loss() };
                (false, request.src_stag, request.src_to, request.rdmardsz)
            }
            _ => return,
        };
        if len == 0 || self.closing.hello_ack.is_none() {
            return;
        }
        // The STag in the header of an RDMA Write, or the SrcSTag in a Read Request.
        let stag_location = unit.locate_first(if write { 4..8 } else { 36..40 });
        let adverts = if write { &self.peers[peer].sink.adverts } else { &self.peers[peer].source.adverts };
        if self.certain && adverts.open().iter().all(|advert| advert.stag != stag) {
            self.unexplained[direction].record_access(UnexplainedAccess { stag_location, stag, write });
        }
        let own = &mut self.peers[direction];
        own.rdma_use.add(RdmaAccess { write, stag, from: to, len: len.into(), stag_location });
        if write {
            own.source.wr_compl_follows = false;
        } else {
            own.sink.last_rd_compl = None;
            if own.read_requests.len() >= MAX_UNACKNOWLEDGED {
                return own.reads.record_loss();
            }
            own.read_requests.push_back((stag, to, len));
        }
        let ranges = if write { &mut own.writes } else { &mut own.reads };
        ranges.add(stag, to, len);
    }

    /// Records that the oldest Read Request of `direction` was answered. Do not call this for
    /// zero-length Reads.
    pub(crate) fn record_read_response(&mut self, direction: Direction) {
        let own = &mut self.peers[direction];
        if let Some((stag, to, len)) = own.read_requests.pop_front() {
            own.returned.add(stag, to, len);
        }
    }

    /// Records that a message is unreadable or not trustworthy.
    pub(crate) fn record_unreadable_message(&mut self) {
        self.complete = false;
        self.drop_uncertain_state();
    }

    /// Records that octets of `direction` are missing or not trustworthy.
    pub(crate) fn record_missing_octets(&mut self, direction: Direction) {
        self.complete = false;
        self.sends[direction].record_loss();
        self.peers[direction].writes.record_loss();
        self.peers[direction].reads.record_loss();
        self.record_out_of_order();
    }

    /// Records that, from now on, the order in which the monitor processes messages of different
    /// directions is not certain. Then it is unknown when each Read was answered.
    pub(crate) fn record_out_of_order(&mut self) {
        self.peers.iter_mut().for_each(|peer| peer.returned.record_loss());
    }

    /// Returns whether the message in the latest Send of `direction` is trustworthy.
    pub(crate) fn has_trusted_send(&self, direction: Direction) -> bool {
        self.sends[direction].latest().is_some()
    }

    /// Returns whether a message that `direction` sent in `frame` or earlier is not acknowledged
    /// and has one of these MIDs. It is possible that the other peer has already received this
    /// message.
    pub(crate) fn may_know_of(&self, direction: Direction, mids: &[Mid], frame: FrameNumber) -> bool {
        self.unacknowledged[direction]
            .iter()
            .any(|UnacknowledgedMessage { message, .. }| message.frame <= frame && mids.contains(&message.mid))
    }

    /// Returns whether the sender of `message` holds MSeqAck back. Until a Data Sink settles a
    /// SrcAvailCancel, the Data Sink acknowledges neither the SrcAvailCancel nor later messages
    /// (section 9.5.4).
    fn holds_back(&self, direction: Direction, message: &Message) -> bool {
        self.canceled[direction.peer()].is_some_and(|cancel| !reached(message.mseq_ack, cancel))
    }

    fn replay(&mut self, direction: Direction, message: &Message) -> Result<(), ()> {
        let peer = direction.peer();
        let edge = self.latest.sender_state.edge.unwrap_or(self.peers[direction].posted);
        // If the sender held MSeqAck back because of a SrcAvailCancel, its previous message
        // possibly did not acknowledge all received messages. `held` is the MSeq of this
        // SrcAvailCancel.
        let held = |cancel: u32| self.latest.sender_state.mseq_ack.is_some_and(|ack| ack.wrapping_add(1) == cancel);
        let held = self.canceled[peer].filter(|cancel| held(*cancel));
        // If the peer counts MSeq from 0, an MSeqAck of 0 acknowledges either the peer's first
        // message or no message. If this message and the peer's first message are both Data, the
        // later state is the same in both cases.
        let is_ambiguous = self.counts_from_zero[peer] && message.mseq_ack == 0;
        self.zero_is_unclear |= is_ambiguous && message.mid != Mid::DATA;
        while let Some(first) = self.unacknowledged[peer].front().copied()
            && reached(message.mseq_ack, first.message.mseq)
        {
            self.zero_is_unclear |= is_ambiguous && first.message.mid != Mid::DATA;
            self.unacknowledged[peer].pop_front();
            let held = held.is_some_and(|cancel| reached(first.message.mseq, cancel));
            let edge = if held { first.edge } else { edge };
            // If the peer counts MSeq from 0, its message with MSeq 0 also uses a buffer. So the
            // highest MSeq that has a buffer is possibly lower by one.
            let edge = edge.wrapping_sub(self.counts_from_zero[peer].into());
            self.peers[direction].apply_received(&first.message, edge)?;
        }
        self.latest.sender_state.record(&self.peers[direction]);
        self.latest.sender_state.certain = !is_ambiguous && !self.zero_is_unclear;
        if self.holds_back(direction, message) {
            // It is possible that the sender has received more messages than it acknowledges.
            self.latest.sender_state.certain = false;
            let is_later =
                self.unacknowledged[peer].back().is_some_and(|last| Some(last.message.mseq) != self.canceled[peer]);
            if is_later && !message.is_answer() {
                return Err(());
            }
        }
        self.latest.affected_advert = self.peers[direction].apply_sent(message)?;
        if self.unacknowledged[direction].len() >= MAX_UNACKNOWLEDGED {
            return Err(());
        }
        let edge = self.edges[peer].unwrap_or(self.peers[peer].posted);
        self.unacknowledged[direction].push_back(UnacknowledgedMessage { message: *message, edge });
        Ok(())
    }
}
