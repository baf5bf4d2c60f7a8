//! Defines the state of one open connection: the octets and the reader of each direction, and the
//! monitor.

use std::net::{IpAddr, SocketAddr};

use super::limits::{CONNECTION_MEMORY, NEAR};
use crate::direction::Direction;
use crate::dropped::DroppedState;
use crate::frame_number::FrameNumber;
use crate::framing::{PeerView, Reader, UnitOutput};
use crate::ip::Segment;
use crate::monitor::Monitor;
use crate::packet::TcpSegment;
use crate::parse::{Carrier, Endpoints, Kind, Unit};
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::tcp::direction_stream::ORIGIN;
use crate::tcp::{DirectionStream, FAR_AFTER_CLOSE, Fingerprints, SegmentOctets, is_far};
use crate::unit;

/// While a direction has fewer octets than this number, each sequence number identifies exactly one
/// octet. The value is a quarter of the 2^32 sequence numbers.
const UNAMBIGUOUS_OCTETS: u64 = 1 << 30;

/// A suspended SDP connection: the endpoint that will connect again (`peer`), and the address to
/// which it will connect (`at`). See section 13.1.1 of the SDP draft.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SuspendedConnection {
    pub(super) peer: IpAddr,
    pub(super) at: SocketAddr,
}

/// One direction of a connection.
pub(super) struct DirectionState {
    pub(super) ends: Endpoints,
    pub(super) half: DirectionStream,
    pub(super) reader: Reader,
    pub(super) fin: bool,
    /// First acknowledgement number that the peer sent for this direction. `latest_ack` is the
    /// latest acknowledgement number.
    pub(super) acked: Option<u32>,
    pub(super) latest_ack: Option<u32>,
    /// Fingerprints of segments, to detect copies.
    pub(super) fingerprints: Fingerprints,
}

impl DirectionState {
    fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        DirectionState {
            ends: Endpoints::new(src, dst),
            half: DirectionStream::default(),
            reader: Reader::default(),
            fin: false,
            acked: None,
            latest_ack: None,
            fingerprints: Fingerprints::default(),
        }
    }

    /// Returns whether the distance between `seq` and a known sequence number of the direction is
    /// at most [`NEAR`]; `None` if no sequence number is known.
    pub(super) fn is_near(&self, seq: u32) -> Option<bool> {
        let known = self.half.end_seq().or(self.acked)?;
        Some(!is_far(known, seq, NEAR))
    }

    /// Returns whether a RST with sequence number `seq` is possibly inside the receiver's window.
    /// The receiver ignores a RST outside its window (RFC 9293 section 3.10.7.4).
    fn accepts_reset(&self, seq: u32) -> bool {
        let known = [self.half.end_seq(), self.latest_ack];
        known == [None; 2] || known.into_iter().flatten().any(|known| !is_far(known, seq, NEAR))
    }

    /// Returns whether the segment is the FIN of an earlier connection with the same ports. The
    /// sequence number of such a FIN is before the sequence number of this connection's SYN. The
    /// receiver therefore drops the FIN.
    fn drops_fin(&self, segment: &Segment<'_>) -> bool {
        let end = segment.seq.wrapping_add(segment.wire_len);
        let is_before = |isn: u32| end.wrapping_sub(isn.wrapping_add(1)).cast_signed() < 0;
        let is_unique = self.half.end() < ORIGIN + UNAMBIGUOUS_OCTETS;
        segment.fin && !segment.syn && is_unique && self.half.isn().is_some_and(is_before)
    }

    /// Returns whether the octets of a segment equal the known octets at its sequence number;
    /// `None` if these octets are not known.
    pub(super) fn compare(&self, segment: &Segment<'_>) -> Option<bool> {
        let is_unique = self.half.end() < ORIGIN + UNAMBIGUOUS_OCTETS;
        self.fingerprints.compare(segment).filter(|_| is_unique)
    }

    /// Returns whether a SYN that was captured late, with sequence number `syn`, can be the start
    /// of this direction. This is possible if `syn` is shortly before the first known sequence
    /// number.
    pub(super) fn begins_with(&self, syn: u32) -> bool {
        let first = self.half.first_seq().or(self.acked).or(self.half.fin());
        !self.half.has_begun() && first.is_some_and(|first| first.wrapping_sub(syn.wrapping_add(1)) < FAR_AFTER_CLOSE)
    }

    fn as_peer(&self) -> PeerView {
        PeerView {
            startup: self.reader.startup,
            undecided: self.reader.is_undecided(&self.half),
            held_back: self.half.has_octets() && !self.half.has_begun(),
            has_no_startup: self.reader.has_no_startup(&self.half),
            hello: self.reader.hello(&self.half),
        }
    }
}

/// A connection that starts while another connection with the same ports is open.
pub(super) struct Replacement {
    /// The connection. Direction 0 is the direction of its first segment.
    pub(super) connection: Box<Connection>,
    /// Sequence number after the first segment of the replacement.
    pub(super) next: u32,
}

/// A connection. Direction 0 is the direction of its first frame.
pub(super) struct Connection {
    pub(super) number: StreamId,
    /// Number of the network. The number distinguishes connections that have the same ports in
    /// different networks. The first network has number 0.
    pub(super) network: u16,
    pub(super) directions: [DirectionState; 2],
    /// The monitor, if the dissector has monitors.
    pub(super) monitor: Option<Monitor>,
    /// Number of the latest frame.
    pub(super) latest_frame: FrameNumber,
    /// Memory in bytes at the last count.
    pub(super) memory: usize,
    /// Whether the readers of both directions know both start-up frames, so that neither reader
    /// waits for the start-up frame of the peer.
    pub(super) startups_known: bool,
    /// Whether, at the last check, the connection had octets that no delivered unit contained.
    pub(super) holds_back: bool,
    pub(super) closed: bool,
    /// Whether the connection lost its slot and then continued. The start of such a connection was
    /// read before the connection lost its slot.
    pub(super) resumed: bool,
    /// Number of delivered units that were incomplete or gaps.
    pub(super) incomplete_units: u64,
    /// Another connection that possibly replaces this connection.
    pub(super) replacement: Option<Replacement>,
    /// If this connection was evicted and resumed: the counts that will be added to
    /// [`DroppedState`]. weft adds them when the first segment with new octets arrives after the
    /// connection resumed. Before this segment, the connection has nothing to deliver. `None` if
    /// the connection was not evicted, or if the counts are already added.
    pub(super) pending_cost: Option<DroppedState>,
}

impl Connection {
    pub(super) fn new(
        number: StreamId,
        network: u16,
        (first, other): (SocketAddr, SocketAddr),
        monitor: Option<Monitor>,
    ) -> Self {
        let directions = [DirectionState::new(first, other), DirectionState::new(other, first)];
        Connection {
            number,
            network,
            directions,
            monitor,
            latest_frame: FrameNumber::NONE,
            memory: 0,
            startups_known: false,
            holds_back: false,
            closed: false,
            resumed: false,
            incomplete_units: 0,
            replacement: None,
            pending_cost: None,
        }
    }

    /// Sets the sequence numbers of the SYNs. Call this only if all captured segments of this
    /// connection are SYNs.
    pub(super) fn begin(&mut self, syns: [Option<u32>; 2]) {
        for (direction, isn) in self.directions.iter_mut().zip(syns) {
            direction.half = isn.map_or_else(DirectionStream::default, DirectionStream::opened);
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
        sink.segment(self.number, &TcpSegment::new(segment));
        if segment.ack_flag && self.directions[index.peer()].half.acknowledge(segment.ack) {
            self.poll(index.peer(), sink);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.segment(index, segment);
        }
        self.directions[index].fingerprints.add(segment);
        if segment.ack_flag && !segment.rst {
            self.directions[index.peer()].acked.get_or_insert(segment.ack);
            self.directions[index.peer()].latest_ack = Some(segment.ack);
        }
        if let Some(arrived) = self.directions[index].half.arrive(segment) {
            if self.startups_known {
                let fast_path = |reader: &mut Reader, half: &mut DirectionStream, target: &mut UnitOutput<'_>| {
                    reader.read_fast(half, &arrived, target);
                };
                self.read(index, Some(&arrived), sink, fast_path);
            }
            self.directions[index].half.keep(&arrived, segment);
        }
        if !self.startups_known || self.directions[index].half.has_unread() {
            self.poll(index, sink);
        }
        self.directions[index].fin |= segment.fin;
        let closes = !self.closed && (segment.rst || self.directions.iter().all(|direction| direction.fin));
        self.closed |= closes;
        closes
    }

    /// Reads direction `index`. If the reader finds a start-up frame for which the other direction
    /// waits, also reads the other direction. Continues until neither direction has a new start-up
    /// frame.
    fn poll(&mut self, mut index: Direction, sink: &mut dyn Sink) {
        loop {
            self.poll_direction(index, sink);
            if self.restart_after_rejection() {
                continue;
            }
            if self.startups_known {
                return;
            }
            let view = self.directions[index].as_peer();
            if self.directions[index.peer()].reader.is_peer_unchanged(&view) {
                self.startups_known = self.directions.iter().all(|direction| direction.reader.startup.is_some());
                return;
            }
            index = index.peer();
        }
    }

    /// If a start-up frame follows a rejection that both readers know, restarts both readers as at
    /// the start of a connection. Returns whether the readers were restarted.
    fn restart_after_rejection(&mut self) -> bool {
        let [forth, back] = &self.directions;
        let any = forth.reader.has_new_startup() || back.reader.has_new_startup();
        let again = any && forth.reader.is_rejected() && back.reader.is_rejected();
        if again {
            self.startups_known = false;
            self.directions.iter_mut().for_each(|DirectionState { half, reader, .. }| reader.restart(half));
        }
        again
    }

    fn poll_direction(&mut self, index: Direction, sink: &mut dyn Sink) {
        let peer = (!self.startups_known).then(|| self.directions[index.peer()].as_peer());
        self.read(index, None, sink, |reader, half, target| {
            if let Some(peer) = &peer {
                reader.set_peer(peer);
            }
            reader.poll(half, target);
        });
    }

    /// Calls `read` with the reader of direction `index`. Units go to the monitor and to `sink`.
    fn read(
        &mut self,
        index: Direction,
        arrived: Option<&SegmentOctets<'_>>,
        sink: &mut dyn Sink,
        read: impl FnOnce(&mut Reader, &mut DirectionStream, &mut UnitOutput<'_>),
    ) {
        let assumes_sdp = self.directions.iter().all(|direction| direction.reader.assumes_sdp());
        let peer_without_crc = self.directions[index.peer()].reader.without_crc;
        let peer_startup_follows_hole = self.directions[index.peer()].reader.startup_follows_hole;
        if let Some(monitor) = &mut self.monitor {
            monitor.state.peer_has_unread = self.directions[index.peer()].half.has_unread();
        }
        let DirectionState { ends, half, reader, .. } = &mut self.directions[index];
        reader.peer_without_crc = peer_without_crc;
        reader.peer_startup_follows_hole = peer_startup_follows_hole;
        let mut deliver_unit = |unit: &Unit<'_>| {
            self.incomplete_units += u64::from(unit.incomplete || matches!(unit.kind, Kind::Gap { .. }));
            match &mut self.monitor {
                _ if assumes_sdp && is_assumed(unit) => sink.unit(&without_context(unit)),
                monitor => deliver(monitor, unit, sink),
            }
        };
        let direction = u8::from(index);
        read(reader, half, &mut UnitOutput { stream: self.number, direction, ends, arrived, sink: &mut deliver_unit });
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        if self.pending_cost.is_some() {
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
        if let Some(monitor) = &mut self.monitor {
            monitor.end(self.number, sink);
        }
    }

    /// Returns whether the connection has MPA or SDP.
    pub(super) fn is_mpa(&self) -> bool {
        self.directions.iter().any(|direction| direction.reader.is_mpa())
    }

    /// If both endpoints have agreed to suspend the connection, returns the addresses with which
    /// the connection will resume. Otherwise returns `None`.
    pub(super) fn suspended(&self) -> Option<SuspendedConnection> {
        let (local, port) = self.monitor.as_ref()?.suspended()?;
        let address = |direction: Direction| self.directions[direction].ends.src.ip();
        Some(SuspendedConnection { peer: address(local.peer()), at: SocketAddr::new(address(local), port) })
    }

    pub(super) fn has_unread(&self) -> bool {
        let has_unread = |DirectionState { half, reader, .. }: &DirectionState| {
            half.has_unread() || half.awaits_octets_before_fin() || reader.has_skipped()
        };
        self.directions.iter().any(has_unread) || self.replacement.as_ref().is_some_and(|it| it.connection.has_unread())
    }

    pub(super) fn count_memory(&self) -> usize {
        let octets = self.directions.iter().map(|direction| direction.half.memory() + direction.reader.memory());
        let replacement = self.replacement.as_ref().map_or(0, |it| CONNECTION_MEMORY + it.connection.count_memory());
        octets.sum::<usize>() + self.monitor.as_ref().map_or(0, Monitor::memory) + replacement
    }
}

/// The unit for sinks, without the state of a monitor.
fn without_context<'a>(parsed: &'a Unit<'a>) -> unit::Unit<'a> {
    unit::Unit { parsed, context: None }
}

fn deliver(monitor: &mut Option<Monitor>, unit: &Unit<'_>, sink: &mut dyn Sink) {
    match monitor {
        Some(monitor) => monitor.unit(unit, sink),
        None => sink.unit(&without_context(unit)),
    }
}

/// Returns whether `unit` is an SDP message in a Send. The caller has already checked that the
/// connection is read as SDP only because of its port. So the Hello of the connection was not
/// captured, and the negotiated settings are unknown. The monitor must not process such a message.
fn is_assumed(unit: &Unit<'_>) -> bool {
    matches!(unit.kind, Kind::Sdp(Carrier::Send, ..))
}
