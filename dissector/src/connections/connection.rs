//! One open connection: the octets and the reader of each direction, and the monitor.

use std::net::{IpAddr, SocketAddr};

use super::limits::{CONNECTION, NEAR};
use crate::direction::Direction;
use crate::dropped::Dropped;
use crate::framing::{PeerView, Reader, Target};
use crate::ip::Segment;
use crate::parse::{Carrier, Ends, Kind, Unit};
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::tcp::half::ORIGIN;
use crate::tcp::{Arrived, FAR_AFTER_CLOSE, Half, Prints, is_far};
use crate::unit;
use crate::watch::Watch;

/// Number of octets in a direction up to which a sequence number identifies one position: a quarter
/// of the 2^32 sequence numbers.
const SEQUENCE_NUMBERS_LAST: u64 = 1 << 30;

/// A suspended SDP connection: the endpoint that will connect again (`peer`), and the address to
/// which it will connect (`at`). See section 13.1.1 of the draft.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspended {
    pub(super) peer: IpAddr,
    pub(super) at: SocketAddr,
}

/// One direction of a connection.
pub(super) struct DirectionState {
    pub(super) ends: Ends,
    pub(super) half: Half,
    pub(super) reader: Reader,
    pub(super) fin: bool,
    /// First acknowledgement number that the peer sent for this direction. `latest_ack` is the
    /// latest.
    pub(super) acked: Option<u32>,
    pub(super) latest_ack: Option<u32>,
    /// Fingerprints of segments, to detect copies.
    pub(super) prints: Prints,
}

impl DirectionState {
    fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        DirectionState {
            ends: Ends::new(src, dst),
            half: Half::default(),
            reader: Reader::default(),
            fin: false,
            acked: None,
            latest_ack: None,
            prints: Prints::default(),
        }
    }

    /// Returns whether `seq` is at most [`NEAR`] from a known sequence number of the direction;
    /// `None` if no sequence number is known.
    pub(super) fn is_near(&self, seq: u32) -> Option<bool> {
        let known = self.half.end_seq().or(self.acked)?;
        Some(!is_far(known, seq, NEAR))
    }

    /// Returns whether a RST with sequence number `seq` may be inside the receiver's window. The
    /// receiver ignores a RST outside its window (RFC 9293 section 3.10.7.4).
    fn accepts_reset(&self, seq: u32) -> bool {
        let known = [self.half.end_seq(), self.latest_ack];
        known == [None; 2] || known.into_iter().flatten().any(|known| !is_far(known, seq, NEAR))
    }

    /// Returns whether the segment is the FIN of an earlier connection with the same ports. The
    /// sequence number of such a FIN is before the SYN, so the receiver drops the FIN.
    fn drops_fin(&self, segment: &Segment<'_>) -> bool {
        let end = segment.seq.wrapping_add(segment.wire_len);
        let is_before = |isn: u32| end.wrapping_sub(isn.wrapping_add(1)).cast_signed() < 0;
        let is_unique = self.half.end() < ORIGIN + SEQUENCE_NUMBERS_LAST;
        segment.fin && !segment.syn && is_unique && self.half.isn().is_some_and(is_before)
    }

    /// Returns whether the octets of a segment equal the known octets at its sequence number;
    /// `None` if these octets are not known.
    pub(super) fn compare(&self, segment: &Segment<'_>) -> Option<bool> {
        let is_unique = self.half.end() < ORIGIN + SEQUENCE_NUMBERS_LAST;
        self.prints.compare(segment).filter(|_| is_unique)
    }

    /// Returns whether a SYN with sequence number `syn` may start this direction although it was
    /// captured late: `syn` is shortly before the first known sequence number.
    pub(super) fn begins_with(&self, syn: u32) -> bool {
        let first = self.half.first_seq().or(self.acked).or(self.half.fin());
        !self.half.has_begun() && first.is_some_and(|first| first.wrapping_sub(syn.wrapping_add(1)) < FAR_AFTER_CLOSE)
    }

    fn as_peer(&self) -> PeerView {
        PeerView {
            startup: self.reader.startup().copied(),
            undecided: self.reader.is_undecided(&self.half),
            held_back: self.half.has_octets() && !self.half.has_begun(),
            begins_otherwise: self.reader.begins_otherwise(&self.half),
            hello: self.reader.hello(&self.half),
        }
    }
}

/// A connection that starts while another connection with the same ports is open.
pub(super) struct Rival {
    /// The connection. Direction 0 is the direction of its first segment.
    pub(super) connection: Box<Connection>,
    /// Sequence number after the first segment of the rival.
    pub(super) next: u32,
}

/// A connection. Direction 0 is the direction of its first frame.
pub(super) struct Connection {
    pub(super) number: StreamId,
    /// Number of the network, to distinguish connections with the same ports; otherwise 0.
    pub(super) network: u16,
    pub(super) directions: [DirectionState; 2],
    /// The monitor, if the dissector has monitors.
    pub(super) watch: Option<Watch>,
    /// Number of the latest frame.
    pub(super) latest_frame: u64,
    /// Memory in bytes, as last counted.
    pub(super) memory: usize,
    /// Whether the readers of both directions know both start-up frames, so that no reader waits
    /// for the other.
    pub(super) introduced: bool,
    /// Whether the connection had octets that are in no delivered unit, as last checked.
    pub(super) holds_back: bool,
    pub(super) closed: bool,
    /// Whether the connection had lost its slot and then continued. Its start was read before that.
    pub(super) goes_on: bool,
    /// Number of delivered units that were incomplete or gaps.
    pub(super) broken: u64,
    /// Another connection that may replace this connection.
    pub(super) rival: Option<Rival>,
    /// Set after the connection was put aside and resumed, until a segment with new octets arrives:
    /// the cost to count then. Before that, the connection has nothing to deliver.
    pub(super) interrupted: Option<Dropped>,
}

impl Connection {
    pub(super) fn new(
        number: StreamId,
        network: u16,
        (first, other): (SocketAddr, SocketAddr),
        watch: Option<Watch>,
    ) -> Self {
        let directions = [DirectionState::new(first, other), DirectionState::new(other, first)];
        Connection {
            number,
            network,
            directions,
            watch,
            latest_frame: 0,
            memory: 0,
            introduced: false,
            holds_back: false,
            closed: false,
            goes_on: false,
            broken: 0,
            rival: None,
            interrupted: None,
        }
    }

    /// Sets the sequence numbers of the SYNs. Nothing else of the connection was captured before.
    pub(super) fn begin(&mut self, syns: [Option<u32>; 2]) {
        for (direction, isn) in self.directions.iter_mut().zip(syns) {
            direction.half = isn.map_or_else(Half::default, Half::opened);
        }
    }

    pub(super) fn direction_of(&self, segment: &Segment<'_>) -> Direction {
        Direction::sent_by(segment.src, self.directions[0].ends.src)
    }

    /// Processes a segment. Returns whether the segment closes the connection.
    pub(super) fn segment(&mut self, segment: &Segment<'_>, sink: &mut dyn Sink) -> bool {
        let index = self.direction_of(segment);
        self.latest_frame = segment.frame;
        if segment.rst && !self.directions[index].accepts_reset(segment.seq) {
            return false;
        }
        let without_fin = Segment { fin: false, ..*segment };
        let segment = if self.directions[index].drops_fin(segment) { &without_fin } else { segment };
        if segment.ack_flag && self.directions[index.peer()].half.acknowledge(segment.ack) {
            self.poll(index.peer(), sink);
        }
        if let Some(watch) = &mut self.watch {
            watch.segment(index, segment);
        }
        self.directions[index].prints.note(segment);
        if segment.ack_flag && !segment.rst {
            self.directions[index.peer()].acked.get_or_insert(segment.ack);
            self.directions[index.peer()].latest_ack = Some(segment.ack);
        }
        if let Some(arrived) = self.directions[index].half.arrive(segment) {
            if self.introduced {
                let straight = |reader: &mut Reader, half: &mut Half, target: &mut Target<'_>| {
                    reader.read_straight(half, &arrived, target);
                };
                self.read(index, Some(&arrived), sink, straight);
            }
            self.directions[index].half.keep(&arrived, segment);
        }
        if !self.introduced || self.directions[index].half.has_unread() {
            self.poll(index, sink);
        }
        self.directions[index].fin |= segment.fin;
        let closes = !self.closed && (segment.rst || self.directions.iter().all(|direction| direction.fin));
        self.closed |= closes;
        closes
    }

    /// Reads direction `index`. If that reveals a start-up frame for which the other direction
    /// waits, reads the other direction, and so on.
    fn poll(&mut self, mut index: Direction, sink: &mut dyn Sink) {
        loop {
            self.poll_direction(index, sink);
            if self.starts_again() {
                continue;
            }
            if self.introduced {
                return;
            }
            let view = self.directions[index].as_peer();
            if self.directions[index.peer()].reader.knows(&view) {
                self.introduced = self.directions.iter().all(|direction| direction.reader.startup().is_some());
                return;
            }
            index = index.peer();
        }
    }

    /// If a start-up frame follows a rejection that both directions know, restarts both readers as
    /// at the start of a connection. Returns whether it did.
    fn starts_again(&mut self) -> bool {
        let [forth, back] = &self.directions;
        let any = forth.reader.begins_again() || back.reader.begins_again();
        let again = any && forth.reader.is_rejected() && back.reader.is_rejected();
        if again {
            self.introduced = false;
            self.directions.iter_mut().for_each(|DirectionState { half, reader, .. }| reader.restart(half));
        }
        again
    }

    fn poll_direction(&mut self, index: Direction, sink: &mut dyn Sink) {
        let peer = (!self.introduced).then(|| self.directions[index.peer()].as_peer());
        self.read(index, None, sink, |reader, half, target| {
            if let Some(peer) = &peer {
                reader.meet(peer);
            }
            reader.poll(half, target);
        });
    }

    /// Calls `read` with the reader of direction `index`. Units go to the monitor and to `sink`.
    fn read(
        &mut self,
        index: Direction,
        arrived: Option<&Arrived<'_>>,
        sink: &mut dyn Sink,
        read: impl FnOnce(&mut Reader, &mut Half, &mut Target<'_>),
    ) {
        let assumes_sdp = self.directions.iter().all(|direction| direction.reader.assumes_sdp());
        let peer_without_crc = self.directions[index.peer()].reader.is_without_crc_fields();
        let peer_startup_follows_hole = self.directions[index.peer()].reader.startup_follows_hole();
        if let Some(watch) = &mut self.watch {
            watch.peer_has_unread(self.directions[index.peer()].half.has_unread());
        }
        let DirectionState { ends, half, reader, .. } = &mut self.directions[index];
        reader.peer_without_crc = peer_without_crc;
        reader.peer_startup_follows_hole = peer_startup_follows_hole;
        let mut hand = |unit: &Unit<'_>| {
            self.broken += u64::from(unit.incomplete || matches!(unit.kind, Kind::Gap { .. }));
            match &mut self.watch {
                _ if assumes_sdp && is_assumed(unit) => sink.unit(&without_context(unit)),
                watch => hand_out(watch, unit, sink),
            }
        };
        let direction = u8::from(index);
        read(reader, half, &mut Target { stream: self.number, direction, ends, arrived, sink: &mut hand });
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        if self.interrupted.is_some() {
            return;
        }
        for direction in &mut self.directions {
            direction.half.finish();
        }
        // The first round determines for each direction whether it has a start-up frame. The second
        // round continues a direction that waited for the other direction.
        for index in [Direction::BOTH; 2].into_iter().flatten() {
            self.poll(index, sink);
        }
        for index in Direction::BOTH {
            self.read(index, None, sink, |reader, half, target| reader.finish(half, target));
        }
        if let Some(watch) = &mut self.watch {
            watch.end(self.number, sink);
        }
    }

    /// Returns whether the connection has MPA or SDP.
    pub(super) fn is_mpa(&self) -> bool {
        self.directions.iter().any(|direction| direction.reader.is_mpa())
    }

    /// How the connection will resume, if both endpoints have agreed to suspend it.
    pub(super) fn suspended(&self) -> Option<Suspended> {
        let (local, port) = self.watch.as_ref()?.suspended()?;
        let address = |direction: Direction| self.directions[direction].ends.src.ip();
        Some(Suspended { peer: address(local.peer()), at: SocketAddr::new(address(local), port) })
    }

    pub(super) fn has_unread(&self) -> bool {
        let has_unread = |DirectionState { half, reader, .. }: &DirectionState| {
            half.has_unread() || half.awaits_octets_before_fin() || reader.has_passed()
        };
        self.directions.iter().any(has_unread) || self.rival.as_ref().is_some_and(|rival| rival.connection.has_unread())
    }

    pub(super) fn count_memory(&self) -> usize {
        let octets = self.directions.iter().map(|direction| direction.half.memory() + direction.reader.memory());
        let rival = self.rival.as_ref().map_or(0, |rival| CONNECTION + rival.connection.count_memory());
        octets.sum::<usize>() + self.watch.as_ref().map_or(0, Watch::memory) + rival
    }
}

/// The unit for sinks, without the state of a monitor.
fn without_context<'a>(parsed: &'a Unit<'a>) -> unit::Unit<'a> {
    unit::Unit { parsed, context: None }
}

fn hand_out(watch: &mut Option<Watch>, unit: &Unit<'_>, sink: &mut dyn Sink) {
    match watch {
        Some(watch) => watch.unit(unit, sink),
        None => sink.unit(&without_context(unit)),
    }
}

/// Returns whether `unit` is an SDP message of a connection whose Hello was not captured. The
/// monitor must not process it, because the negotiated settings are unknown. The caller has already
/// checked that the connection is read as SDP by assumption.
fn is_assumed(unit: &Unit<'_>) -> bool {
    matches!(unit.kind, Kind::Sdp(Carrier::Send, ..))
}
