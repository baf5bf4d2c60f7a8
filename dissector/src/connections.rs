//! Assigns the segments of a capture to connections, and limits the memory of the connections.
//!
//! In this module, "ports" means the addresses and TCP ports of both endpoints.
//!
//! **Memory.** An open connection has a slot with its full state. If a connection loses its slot,
//! its protocol units that were not delivered yet are delivered. After that, only a
//! [`ConnectionSummary`](crate::tcp::ConnectionSummary) of the connection stays, and for some
//! connections also a [`Record`] (see below). A connection loses its slot in three cases:
//!
//! * Another connection uses its ports.
//! * It was closed (by a RST, or by a FIN from each endpoint), and after that more than
//!   [`MAX_LINGERING`](limits::MAX_LINGERING) other connections were closed. Until then,
//!   the slot stays, because late retransmissions need the full state.
//! * It is evicted because of a memory limit: more than [`MAX_OPEN`] connections are open, or all
//!   connections together use more than [`MAX_MEMORY`] octets of memory. If [`MAX_MEMORY`] is
//!   exceeded, the connection of the current segment is not evicted.
//!
//! If a memory limit is exceeded, closed connections and connections with neither MPA nor SDP lose
//! their slots first. Of these connections, the connection that was idle for the longest time comes
//! first. If an evicted connection has MPA or SDP, a [`Record`] is stored. The connection can
//! resume from its record.
//!
//! If a connection without a slot receives new octets, it keeps its number. If it has a record, it
//! resumes from the record. If it has no record, it resumes like a connection whose start was not
//! captured. [`DroppedState`] counts the lost state. Suppose that a connection was evicted with a
//! record, and that a later segment does not fit this connection. weft then does not replace the
//! connection at once. The segment only starts a possible [`replacement`], as for an open
//! connection.
//!
//! **Equal ports in several networks.** A network is a VLAN, a tunnel or an interface. The first
//! segment from another network can have the ports of a known connection. There are three cases:
//! this segment is a copy of a known segment, a segment of the other direction of this connection,
//! or a segment of another connection. If its sequence numbers fit, it counts as part of the known
//! connection. Suppose that a later segment from that network has the same sequence number as a
//! known segment. If the octets of the two segments are equal, the later segment is a copy. If they
//! differ, the network has a second connection with these ports. [`JoinedConnections`] counts each
//! network whose segments weft adds to a connection of another network.
//!
//! **Reused ports.** If a SYN and the SYN of the known connection have different sequence numbers,
//! the new SYN starts another connection. If the SYN of the other connection was not captured, a
//! large distance from the known sequence numbers shows that a segment belongs to another
//! connection. If the known connection is not closed, both connections stay open until later
//! segments show which connection is real (see [`replacement`]).

mod connection;
mod eviction;
mod joining;
mod limits;
mod owner;
mod record;
mod replacement;

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::dropped::DroppedState;
use crate::ip::Segment;
use crate::joined::JoinedConnections;
use crate::monitor::Monitor;
use crate::packet::Packet;
use crate::parse::Endpoints;
use crate::path::Path;
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::tcp::{Lookup, SegmentClass, Table, TrackedConnection};
use connection::{Connection, SuspendedConnection};
use limits::{CONNECTION_MEMORY, MAX_MEMORY, MAX_OPEN, MAX_SUSPENDED};
use owner::Owner;
use record::Record;

/// All connections of a capture.
#[derive(Default)]
pub(crate) struct Connections {
    without_monitors: bool,
    /// Whether the monitors ignore the protocols above RDMAP, except SDP.
    ignore_ulps: bool,
    /// TCP ports whose connections are read as SDP.
    sdp_ports: Vec<u16>,
    table: Table<Record>,
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// The number that the next new connection will get.
    next: StreamId,
    /// Memory of the open connections in bytes.
    memory: usize,
    /// Number of open connections with octets that no delivered unit contains yet.
    holding: usize,
    /// Slot and number of each closed connection that still has a slot, oldest first.
    closed: VecDeque<(usize, StreamId)>,
    /// Suspended SDP connections that no new connection has resumed, oldest first.
    suspended: VecDeque<SuspendedConnection>,
    dropped: DroppedState,
    joined: JoinedConnections,
}

impl Connections {
    /// Connections without monitors.
    pub(crate) fn without_monitors() -> Self {
        Connections { without_monitors: true, ..Connections::default() }
    }

    /// From now on, the monitors of new connections ignore the protocols above RDMAP, except SDP.
    pub(crate) fn ignore_ulps(&mut self) {
        self.ignore_ulps = true;
    }

    /// From now on, connections from and to `port` are read as SDP.
    pub(crate) fn decode_as_sdp(&mut self, port: u16) {
        self.sdp_ports.push(port);
    }

    /// Memory of the open connections in bytes.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Approximate memory of all connections in bytes.
    pub(crate) fn memory_of_all(&self) -> usize {
        self.memory + (self.slots.len() - self.free.len()) * CONNECTION_MEMORY + self.table.memory()
    }

    /// The state that was dropped because of the memory limits.
    pub(crate) fn dropped(&self) -> DroppedState {
        let DroppedState { forgotten, others_forgotten, .. } = self.dropped;
        let forgotten = forgotten + self.table.forgotten;
        let others_forgotten = others_forgotten + self.table.others_forgotten;
        DroppedState { forgotten, others_forgotten, ..self.dropped }
    }

    /// Connections that were captured in several networks.
    pub(crate) fn joined(&self) -> JoinedConnections {
        self.joined
    }

    /// Returns whether a connection has octets that no delivered unit contains yet.
    pub(crate) fn holds_back(&self) -> bool {
        self.holding > 0
    }

    pub(crate) fn segment(&mut self, segment: &Segment<'_>, sink: &mut dyn Sink) {
        let Segment { src, dst, .. } = segment;
        let (slot, of_replacement) = match self.owner(segment) {
            Owner::Known(network, Some(TrackedConnection::Open(slot))) => self.assign(slot, network, segment, sink),
            Owner::Known(network, Some(TrackedConnection::Past(past))) => match past.classify(segment) {
                SegmentClass::NothingNew => return sink.packet(&Packet::of_segment(segment, past.number)),
                SegmentClass::Late => {
                    self.dropped.late += 1;
                    return sink.packet(&Packet::of_segment(segment, past.number));
                }
                SegmentClass::NewConnection if self.may_resume(&past, network, segment) => {
                    let slot = self.resume(&past, network, segment, sink);
                    self.assign(slot, network, segment, sink)
                }
                SegmentClass::NewConnection => (self.open_new(network, segment, sink), false),
                SegmentClass::Continues => (self.resume(&past, network, segment, sink), false),
            },
            Owner::Known(network, None) => (self.open_new(network, segment, sink), false),
            Owner::New(network, syns) => {
                let slot = self.open_new(network, segment, sink);
                if let Some(Some(connection)) = self.slots.get_mut(slot) {
                    connection.begin(syns);
                }
                (slot, false)
            }
        };
        if !of_replacement
            && let Some(Some(connection)) = self.slots.get(slot)
            && connection.pending_cost.is_some()
            && connection.summary(true).classify(segment) == SegmentClass::NothingNew
        {
            return sink.packet(&Packet::of_segment(segment, connection.number));
        }
        let resumes =
            segment.syn && !segment.ack_flag && self.take_suspended(SuspendedConnection { peer: src.ip(), at: *dst });
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        if let Some(cost) = connection.pending_cost.take_if(|_| !of_replacement) {
            self.dropped.interruptions += cost.interruptions;
            self.dropped.other_interruptions += cost.other_interruptions;
        }
        let target = connection.or_replacement(of_replacement);
        sink.packet(&Packet::of_segment(segment, target.number));
        if let Some(monitor) = target.monitor.as_mut().filter(|_| resumes) {
            monitor.state.resume();
        }
        let closes = target.segment(segment, sink) && !of_replacement;
        // After the SuspCommAck, the endpoints of a suspended SDP connection close TCP. A later TCP
        // connection can resume the SDP connection, so store its addresses.
        if (segment.fin || segment.rst)
            && let Some(suspended) = target.suspended().filter(|suspended| !self.suspended.contains(suspended))
        {
            self.suspended.push_back(suspended);
            self.suspended.drain(..self.suspended.len().saturating_sub(MAX_SUSPENDED));
        }
        let number = connection.number;
        let memory = connection.count_memory();
        let before = std::mem::replace(&mut connection.memory, memory);
        self.memory = self.memory - before + memory;
        let holds_back = connection.has_unread();
        let held_back = std::mem::replace(&mut connection.holds_back, holds_back);
        self.holding = self.holding + usize::from(holds_back) - usize::from(held_back);
        if closes {
            self.closed.push_back((slot, number));
            self.retire_closed(sink);
        }
        if self.memory > MAX_MEMORY {
            let may = |it: &Connection| it.number != number && it.memory > 0;
            self.evict(may, |all| all.memory <= MAX_MEMORY / 2, sink);
        }
    }

    /// Number and monitor of the connection to which `segment` belongs. Call this directly after
    /// [`Connections::segment`] has processed the segment.
    pub(crate) fn monitor_of(&mut self, segment: &Segment<'_>) -> Option<(StreamId, &mut Monitor)> {
        let Lookup::Known { connection: Some(TrackedConnection::Open(slot)), .. } = self.table.find(segment) else {
            return None;
        };
        let connection = self.slots.get_mut(slot)?.as_mut()?;
        let of_replacement = connection.is_replacement_syn(segment);
        let connection = connection.or_replacement(of_replacement);
        Some((connection.number, connection.monitor.as_mut()?))
    }

    /// If the list of suspended connections contains `by`, removes `by` and returns true. A
    /// suspended connection is resumed at most one time.
    fn take_suspended(&mut self, by: SuspendedConnection) -> bool {
        let at = self.suspended.iter().position(|suspended| *suspended == by);
        at.is_some_and(|at| self.suspended.remove(at).is_some())
    }

    fn next_number(&mut self) -> StreamId {
        let number = self.next;
        self.next = number.next();
        number
    }

    fn open_new(&mut self, network: u16, segment: &Segment<'_>, sink: &mut dyn Sink) -> usize {
        let number = self.next_number();
        self.open(number, (segment.src, segment.dst), (network, segment.path), sink).0
    }

    /// Creates a connection in a free slot. Returns the slot. If an earlier connection with the
    /// same ports left a record, also returns this record.
    fn open(
        &mut self,
        number: StreamId,
        ports: (SocketAddr, SocketAddr),
        at: (u16, Path),
        sink: &mut dyn Sink,
    ) -> (usize, Option<Box<Record>>) {
        if self.slots.len() - self.free.len() >= MAX_OPEN {
            self.evict(|_| true, |all| all.slots.len() - all.free.len() <= MAX_OPEN / 4 * 3, sink);
        }
        self.insert(self.make(number, at.0, ports), at)
    }

    /// Creates a connection without octets. If one of its TCP ports is in `sdp_ports`, the
    /// connection is read as SDP.
    fn make(&self, number: StreamId, network: u16, ports: (SocketAddr, SocketAddr)) -> Box<Connection> {
        let mut connection = Connection::new(number, network, ports, (!self.without_monitors).then(Monitor::default));
        if let Some(monitor) = &mut connection.monitor {
            monitor.state.ignores_ulps = self.ignore_ulps;
        }
        if self.sdp_ports.iter().any(|port| [ports.0.port(), ports.1.port()].contains(port)) {
            connection.directions.iter_mut().for_each(|direction| direction.reader.as_sdp = true);
        }
        Box::new(connection)
    }

    /// Puts a connection into a slot.
    fn insert(&mut self, connection: Box<Connection>, at: (u16, Path)) -> (usize, Option<Box<Record>>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let Endpoints { src, dst, .. } = connection.directions[0].ends;
        self.slots[slot] = Some(connection);
        (slot, self.table.open((src, dst), at, slot))
    }

    /// Delivers the remaining units of all connections, in the order of the connection numbers.
    /// Call this when the capture ends.
    pub(crate) fn finish(&mut self, sink: &mut dyn Sink) {
        let mut open: Vec<Box<Connection>> = std::mem::take(&mut self.slots).into_iter().flatten().collect();
        let replacements = open.iter_mut().filter_map(|connection| connection.replacement.take());
        let replacements: Vec<_> = replacements.map(|replacement| replacement.connection).collect();
        open.extend(replacements);
        open.sort_by_key(|connection| connection.number);
        for connection in &mut open {
            connection.finish(sink);
        }
        let dropped = self.dropped();
        let Connections { next, without_monitors, ignore_ulps, joined, .. } = *self;
        *self = Connections { next, without_monitors, ignore_ulps, dropped, joined, ..Connections::default() };
    }
}
