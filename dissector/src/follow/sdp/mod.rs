//! The state of an SDP connection: what each peer knows of its two half-connections, credits,
//! advertisements, and how it ends.
//!
//! The state follows what both peers may know (sections 12 to 14 of the draft; see `end`) and
//! checks no rules. Every start-up profile leads here: the state begins with the Hello, whatever
//! carried it.
//!
//! **Uncertain state is not reported.** Messages may be missing in the capture: an MSeq does not
//! follow, or headers were not captured. The Modes are then unknown until the next ModeChange, and
//! advertisements and NonDiscards for good. Credits, and the opening and closing of the connection,
//! are still reported.
//!
//! **Memory** is bounded: `MOST_UNACKNOWLEDGED` messages that a peer has not acknowledged,
//! `advert::MOST_OPEN` advertisements of each kind and peer, [`MOST_CHANGES`] changes of Mode.
//! Above these limits, advertisements are no longer followed.

mod acts;
mod advert;
mod before;
mod closing;
mod credits;
mod end;
mod message;
mod mids;
mod moved;
mod numbers;
mod profile;
mod resize;
mod sends;
mod strays;
#[cfg(test)]
mod tests;
mod urgent;

use std::collections::VecDeque;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::wire::sdp::{FieldOrder, Mid, Mode};

pub(crate) use acts::{Act, Stray};
pub(crate) use advert::End as Why;
pub use advert::{Advert, Adverts};
pub(crate) use before::Before;
pub use closing::{Closing, State, Suspension};
pub use credits::Credits;
pub(crate) use credits::reached;
pub use end::{End, Sink, Source, Subject};
pub(crate) use message::Setup;
pub use profile::Profile;
pub(crate) use sends::Sent;
use strays::{StrayRdma, Strays};

use super::connection::Connection;
use crate::direction::Direction;
use crate::parse::SegmentView;
use crate::parse::{Carrier, Located, Unit};
use crate::part::Part;
use message::{Extension, Message};
use resize::Larger;
use sends::Sends;

/// Messages of a peer that are kept until the other acknowledges them.
const MOST_UNACKNOWLEDGED: usize = 4096;
/// Changes of Mode that are listed for each half-connection.
pub const MOST_CHANGES: usize = 32;

/// A change of the Mode of a half-connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The frame of the ModeChange.
    pub frame: u64,
    /// The Mode that it names; `None` for the reserved values.
    pub mode: Option<Mode>,
}

/// The changes of a half-connection's Mode.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Number of ModeChanges.
    pub count: u64,
    /// The first ModeChanges.
    pub listed: Vec<Change>,
}

/// Facts about the last message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latest {
    /// Its sender's direction.
    pub direction: Direction,
    /// The advertisement that it concerned.
    pub subject: Option<Subject>,
    /// Was it a Data message without payload (section 10.4)?
    pub gratuitous: bool,
    /// Was it the HelloAck?
    pub hello_ack: bool,
    /// Its sender's state before it.
    pub(crate) before: Before,
    /// The Send that carried it; `None` if something else carried it.
    pub(crate) sent: Option<Sent>,
}

/// A message that the other end has not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    message: Message,
    /// The other end's offer by then (its highest MSeqAck + Bufs): the minimum that it can have
    /// offered when the message arrived.
    edge: u32,
}

/// The state of one SDP connection; index 0 and 1 are directions, and the ends that send in them.
#[derive(Debug, Clone)]
pub struct SdpState {
    /// The direction of the Hello: that of the Connecting Peer.
    pub connecting: Direction,
    /// What carried the Hello.
    pub carrier: Carrier,
    /// The start-up sequence, once start-up frames or the HelloAck showed it.
    pub profile: Option<Profile>,
    /// Stream position after the first octets of the HelloAck.
    pub(crate) hello_ack_end: Option<u64>,
    /// How it begins and ends.
    pub closing: Closing,
    /// The peers.
    pub ends: [End; 2],
    /// The credit of each end.
    pub credits: [Credits; 2],
    /// The Mode of the half-connection whose Source is the end of the index, from its Master's
    /// view; `None` if it is not known.
    pub modes: [Option<Mode>; 2],
    /// The changes of Mode of the half-connection whose Source is the end of the index.
    pub changes: [Changes; 2],
    /// Were all messages of both ends read? This is certain only at the end.
    pub(crate) complete: bool,
    /// The frame and location of the Connecting Peer's first message after the Hello.
    pub(crate) first_message: Option<(u64, Located)>,
    /// Are advertisements and NonDiscards certain?
    pub certain: bool,
    /// The last message.
    pub latest: Latest,
    /// The messages of each end that the other did not acknowledge.
    unacknowledged: [VecDeque<Waiting>; 2],
    /// MSeq and MSeqAck of the last message of each direction after Hello and HelloAck.
    numbers: [Option<(u32, u32)>; 2],
    /// The highest MSeqAck + Bufs of each direction after Hello and HelloAck.
    edges: [Option<u32>; 2],
    /// Had each direction acknowledged nothing, or MSeq 0, when it sent that edge?
    edges_at_zero: [bool; 2],
    /// MSeq of each direction's last SrcAvailCancel.
    canceled: [Option<u32>; 2],
    /// Did the direction begin with MSeq 0?
    counts_from_zero: [bool; 2],
    sends: [Sends; 2],
    /// Accesses and messages of each end that nothing explains so far.
    pub(crate) strays: [Strays; 2],
}

impl SdpState {
    /// The state of a connection that begins with this Hello.
    pub(crate) fn begin(direction: Direction, carrier: Carrier) -> Self {
        SdpState {
            connecting: direction,
            carrier,
            profile: None,
            hello_ack_end: None,
            closing: Closing::default(),
            ends: Direction::BOTH.map(|end| End { accepting: end != direction, ..End::default() }),
            credits: Default::default(),
            modes: [None; 2],
            changes: Default::default(),
            complete: true,
            first_message: None,
            certain: true,
            latest: Latest::default(),
            unacknowledged: Default::default(),
            numbers: [None; 2],
            edges: [None; 2],
            edges_at_zero: [false; 2],
            canceled: [None; 2],
            counts_from_zero: [false; 2],
            sends: Default::default(),
            strays: Default::default(),
        }
    }

    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        let waiting: usize = self.unacknowledged.iter().map(VecDeque::capacity).sum();
        size_of::<Self>() + waiting * size_of::<Waiting>() + self.ends.iter().map(End::memory).sum::<usize>()
    }

    /// Processes a message.
    pub(crate) fn message(
        &mut self,
        direction: Direction,
        (carrier, order, part): (Carrier, FieldOrder, Part<'_>),
        (frame, position, header): (u64, u64, Located),
        connection: &Connection,
    ) {
        self.latest = Latest { direction, ..Latest::default() };
        self.latest.before.sent = self.ends[direction].sent;
        self.latest.before.receive_size = self.ends[direction].receive_size;
        self.latest.before.oob_pending = self.ends[direction].oob_pending;
        self.latest.sent = self.sends[direction].latest().filter(|_| carrier == Carrier::Send);
        let Some(message) = Message::read(part, order, (frame, header)) else {
            self.numbers[direction] = None;
            self.sends[direction].unread(part.is_complete());
            return self.miss();
        };
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
        self.oob(direction, &message);
        if carrier != Carrier::Send || matches!(message.mid, Mid::HELLO | Mid::HELLO_ACK) {
            return;
        }
        if direction == self.connecting {
            self.first_message.get_or_insert((frame, header));
        }
        if self.closing.hello_ack.is_none() {
            // A message is missing, or the capture has the directions out of step.
            self.lose();
        }
        self.credits[direction].sent(message.mseq);
        self.number(direction, &message);
        self.change(direction, &message);
        self.apply(direction, &message);
        if self.certain && self.replay(direction, &message).is_err() {
            self.lose();
        }
    }

    /// Applies the effects of a message that do not depend on its receiver.
    fn apply(&mut self, direction: Direction, message: &Message) {
        let end = &mut self.ends[direction];
        end.sent.add(message.mid);
        match (message.mid, message.extension) {
            (Mid::CH_RCV_BUF, _) => end.resizes += 1,
            (Mid::CH_RCV_BUF_ACK, _) => end.resized += 1,
            (mid @ (Mid::SRC_AVAIL | Mid::SINK_AVAIL), Extension::Advert { stag, .. }) => {
                self.strays[direction.peer()].advertised(stag, mid == Mid::SINK_AVAIL);
            }
            _ => {}
        }
    }

    /// The connection ends: each end is assumed to have received everything up to the last message.
    pub(crate) fn finish(&mut self) {
        for direction in Direction::BOTH {
            while self.certain
                && let Some(Waiting { message, .. }) = self.unacknowledged[direction].pop_front()
            {
                let edge = self.edges[direction.peer()].unwrap_or_default();
                if self.ends[direction.peer()].receives(&message, edge).is_err() {
                    self.lose();
                }
            }
        }
    }

    /// The first RDMA Write of `direction` after its last message, to a SinkAvail that its own
    /// SinkCancelAck had ended. It is not reported if a later advertisement names the STag, whether
    /// or not the sender knew that advertisement.
    pub(crate) fn write_after_cancel_ack(&self, direction: Direction) -> Option<Act> {
        let (end, peer) = (&self.ends[direction], &self.ends[direction.peer()]);
        let is_open = |stag: u32| {
            let usable = end.source.usable.iter().map(|advert| advert.stag);
            usable.chain(peer.sink.adverts.open().iter().map(|advert| advert.stag)).any(|open| open == stag)
        };
        let is_canceled = |stag: u32| end.source.gone.of(stag) == Some(Why::Revoked) && !is_open(stag);
        end.acts.find(|act| self.certain && act.write && is_canceled(act.stag))
    }

    /// Messages are missing.
    fn lose(&mut self) {
        self.certain = false;
        self.modes = [None; 2];
        self.latest.before.certain = false;
        self.strays.iter_mut().for_each(|strays| strays.rdma.clear());
        self.ends.iter_mut().for_each(End::forget);
        self.unacknowledged.iter_mut().for_each(VecDeque::clear);
    }

    fn set_up(&mut self, direction: Direction, message: &Message, connection: &Connection) {
        if self.profile.is_none() {
            self.profile = Profile::of(self.carrier, self.connecting, self.closing.hello_ack.is_some(), connection);
        }
        match message.extension {
            Extension::Setup(setup) => {
                let end = &mut self.ends[direction];
                (end.max_adverts, end.receive_size) = (Some(setup.max_adverts), Some(setup.receive_size));
                end.setup = Some(setup);
                // The HelloAck takes one of the Connecting Peer's buffers.
                end.posted = u32::from(message.bufs).saturating_sub(u32::from(message.mid == Mid::HELLO));
                let other = &mut self.ends[direction.peer()];
                (other.granted, other.sizes.peer) = (Some(message.bufs.into()), Some(setup.receive_size));
                if message.mid == Mid::HELLO_ACK && self.numbers != [None; 2] {
                    // The capture has it after messages that it precedes.
                    self.lose();
                } else if message.mid == Mid::HELLO_ACK && self.certain {
                    self.ends.iter_mut().for_each(End::begin);
                    self.modes = [Some(Mode::Combined); 2];
                }
            }
            Extension::Size(size) if message.mid == Mid::CH_RCV_BUF_ACK => {
                let end = &mut self.ends[direction];
                if let Some(before) = end.receive_size.replace(size).filter(|before| size < *before) {
                    let edge = message.mseq_ack.wrapping_add(u32::from(message.bufs));
                    end.sizes.larger = Some(Larger { octets: before, edge });
                }
            }
            _ => {}
        }
    }

    /// Section 9.5.3: an announced octet is pending until a Data message brings it.
    fn oob(&mut self, direction: Direction, message: &Message) {
        let pending = &mut self.ends[direction].oob_pending;
        *pending = pending.saturating_add(u32::from(message.flags.oob_pend));
        if message.mid == Mid::DATA && message.flags.oob_pres {
            *pending = pending.saturating_sub(1);
        }
    }

    fn change(&mut self, direction: Direction, message: &Message) {
        let Extension::Mode { mode, s } = message.extension else { return };
        let (half, mode) = (if s { direction.peer() } else { direction }, Mode::from_value(mode));
        self.modes[half] = mode.or(self.modes[half]);
        let changes = &mut self.changes[half];
        changes.count += 1;
        if changes.listed.len() < MOST_CHANGES {
            changes.listed.push(Change { frame: message.frame, mode });
        }
    }

    /// Processes a trustworthy segment of `direction`.
    pub(crate) fn segment(&mut self, direction: Direction, view: &SegmentView<'_>, unit: &Unit<'_>) {
        self.sends[direction].segment(view, unit);
        let peer = direction.peer();
        let (write, stag, to, len) = match (view.opcode(), view.segment) {
            (Opcode::WRITE, Segment::Tagged(header, _)) => {
                (true, header.stag.get(), header.tagged_offset.get(), view.payload_len)
            }
            (Opcode::READ_REQUEST, Segment::Untagged(..)) => {
                let request = view.payload.all().and_then(|octets| ReadRequest::parse(octets).ok());
                let Some(request) = request else { return self.ends[direction].reads.lose() };
                (false, request.src_stag, request.src_to, request.rdmardsz)
            }
            _ => return,
        };
        if len == 0 || self.closing.hello_ack.is_none() {
            return;
        }
        // The STag of the header, or SrcSTag of the Read Request.
        let place = unit.locate_first(if write { 4..8 } else { 36..40 });
        let adverts = if write { &self.ends[peer].sink.adverts } else { &self.ends[peer].source.adverts };
        if self.certain && adverts.open().iter().all(|advert| advert.stag != stag) {
            self.strays[direction].rdma(StrayRdma { place, stag, write });
        }
        let end = &mut self.ends[direction];
        end.acts.add(Act { write, stag, from: to, len: len.into(), place });
        if !write {
            if end.read_requests.len() >= MOST_UNACKNOWLEDGED {
                return end.reads.lose();
            }
            end.read_requests.push_back((stag, to, len));
        }
        let ranges = if write { &mut end.writes } else { &mut end.reads };
        ranges.add(stag, to, len);
    }

    /// The oldest Read Request of `direction` that requested octets was answered, or an atomic
    /// operation.
    pub(crate) fn answered(&mut self, direction: Direction) {
        let end = &mut self.ends[direction];
        if let Some((stag, to, len)) = end.read_requests.pop_front() {
            end.returned.add(stag, to, len);
        }
    }

    /// A message is unreadable or not trustworthy.
    pub(crate) fn miss(&mut self) {
        self.complete = false;
        self.lose();
    }

    /// Octets of `direction` are missing or not trustworthy.
    pub(crate) fn lose_octets(&mut self, direction: Direction) {
        self.complete = false;
        self.sends[direction].lose();
        self.ends[direction].writes.lose();
        self.ends[direction].reads.lose();
        self.lose_step();
    }

    /// The capture may have the directions out of step: it is unknown when each Read was answered.
    pub(crate) fn lose_step(&mut self) {
        self.ends.iter_mut().for_each(|end| end.returned.lose());
    }

    /// Is the message in a Send of `direction` trustworthy?
    pub(crate) fn believes(&self, direction: Direction) -> bool {
        self.sends[direction].latest().is_some()
    }

    /// Did `direction` send a message with one of these MIDs, up to this frame, that the other end
    /// has not acknowledged? The other end may still have received it.
    pub(crate) fn may_know_of(&self, direction: Direction, mids: &[Mid], frame: u64) -> bool {
        self.unacknowledged[direction]
            .iter()
            .any(|Waiting { message, .. }| message.frame <= frame && mids.contains(&message.mid))
    }

    /// Before it settles a SrcAvailCancel, a Data Sink acknowledges neither that message nor any
    /// later one (section 9.5.4).
    fn holds_back(&self, direction: Direction, message: &Message) -> bool {
        self.canceled[direction.peer()].is_some_and(|cancel| !reached(message.mseq_ack, cancel))
    }

    fn replay(&mut self, direction: Direction, message: &Message) -> Result<(), ()> {
        let peer = direction.peer();
        let edge = self.latest.before.edge.unwrap_or(self.ends[direction].posted);
        // Its last message may have held back the acknowledgement of messages that it had received.
        let held = |cancel: u32| self.latest.before.mseq_ack.is_some_and(|ack| ack.wrapping_add(1) == cancel);
        let held = self.canceled[peer].filter(|cancel| held(*cancel));
        while let Some(first) = self.unacknowledged[peer].front().copied()
            && reached(message.mseq_ack, first.message.mseq)
        {
            self.unacknowledged[peer].pop_front();
            let held = held.is_some_and(|cancel| reached(first.message.mseq, cancel));
            self.ends[direction].receives(&first.message, if held { first.edge } else { edge })?;
        }
        self.latest.before.note(&self.ends[direction]);
        // By the other reading of MSeq (C4) an MSeqAck of 0 acknowledges one message, or none.
        self.latest.before.certain = self.counts_from_zero == [false; 2];
        if self.holds_back(direction, message) {
            // It may have received more than it acknowledges.
            self.latest.before.certain = false;
            let is_later =
                self.unacknowledged[peer].back().is_some_and(|last| Some(last.message.mseq) != self.canceled[peer]);
            if is_later && !message.is_answer() {
                return Err(());
            }
        }
        self.latest.subject = self.ends[direction].sends(message)?;
        if self.unacknowledged[direction].len() >= MOST_UNACKNOWLEDGED {
            return Err(());
        }
        let edge = self.edges[peer].unwrap_or(self.ends[peer].posted);
        self.unacknowledged[direction].push_back(Waiting { message: *message, edge });
        Ok(())
    }
}
