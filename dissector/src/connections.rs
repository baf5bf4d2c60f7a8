//! The connections of a capture: assigns segments to connections, and limits memory.
//!
//! In this module, "ports" means the addresses and TCP ports of both endpoints.
//!
//! **Memory.** An open connection has a slot with its full state. If a connection loses its slot,
//! its remaining units are delivered, and only its [`Past`](crate::tcp::Past) (a short summary)
//! stays. A connection loses its slot in three cases:
//!
//! * Its ports are used by another connection.
//! * It was closed (by RST, or FIN from both endpoints), and since then more than
//!   [`LINGERING`](limits::LINGERING) other connections were closed. Until then, late
//!   retransmissions still find the full state.
//! * It is put aside because of a memory limit: more than [`MOST_OPEN`] connections are open, or
//!   all connections together use more than [`MOST_OCTETS`] octets of memory. The second limit
//!   never affects the connection that just received a segment.
//!
//! Connections without MPA and SDP are put aside first, and among them the connections that were
//! idle for longest. For a connection with MPA or SDP, a [`Record`] is stored, from which it can
//! resume.
//!
//! If a connection without a slot receives new octets, it continues under its number. It resumes
//! from its record, or without a record like a connection whose start was not captured. [`Dropped`]
//! counts the lost state. If a segment does not fit a connection that was put aside with a record,
//! the segment does not replace the connection. It starts a [`rival`] instead, as for an open
//! connection.
//!
//! **Equal ports in several networks.** The first segment from another VLAN, tunnel or interface
//! may have the ports of a known connection. This segment may be a copy of a known segment, a
//! segment of the other direction, or a segment of another connection. If its sequence numbers fit,
//! it counts as part of the known connection. Later a segment from that network may repeat a known
//! sequence number. If this segment has the same octets, it is a copy. If its octets differ, the
//! network has another connection. [`Joined`] counts the networks with copies.
//!
//! **Reused ports.** A SYN with another sequence number starts another connection. If the SYN was
//! not captured, a large distance from the known sequence numbers shows another connection. If the
//! known connection is not closed, both connections stay open until later segments show which of
//! them is real (see [`rival`]).

mod aside;
mod connection;
mod joining;
mod limits;
mod owner;
mod record;
mod rival;

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::dropped::Dropped;
use crate::ip::Segment;
use crate::joined::Joined;
use crate::packet::Packet;
use crate::parse::Ends;
use crate::path::Path;
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::tcp::{Afterwards, Located, Place, Table};
use crate::watch::Watch;
use connection::{Connection, Suspended};
use limits::{CONNECTION, MOST_OCTETS, MOST_OPEN, MOST_SUSPENDED};
use owner::Owner;
use record::Record;

/// The connections of a capture.
#[derive(Default)]
pub(crate) struct Connections {
    unwatched: bool,
    /// Ports whose connections are read as SDP.
    sdp_ports: Vec<u16>,
    table: Table<Record>,
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// Number for the next new connection.
    next: StreamId,
    /// Memory of the open connections in bytes.
    memory: usize,
    /// Number of open connections with octets that are in no delivered unit yet.
    holding: usize,
    /// Slot and number of closed connections that still have a slot, oldest first.
    closed: VecDeque<(usize, StreamId)>,
    /// Suspended SDP connections that no new connection has resumed, oldest first.
    suspended: VecDeque<Suspended>,
    dropped: Dropped,
    joined: Joined,
}

impl Connections {
    /// Connections without monitors.
    pub(crate) fn unwatched() -> Self {
        Connections { unwatched: true, ..Connections::default() }
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
        self.memory + (self.slots.len() - self.free.len()) * CONNECTION + self.table.memory()
    }

    /// The state that was dropped because of the memory limits.
    pub(crate) fn dropped(&self) -> Dropped {
        let Dropped { forgotten, others_forgotten, .. } = self.dropped;
        let forgotten = forgotten + self.table.forgotten();
        let others_forgotten = others_forgotten + self.table.others_forgotten();
        Dropped { forgotten, others_forgotten, ..self.dropped }
    }

    /// Connections that were captured in several networks.
    pub(crate) fn joined(&self) -> Joined {
        self.joined
    }

    /// Returns whether a connection has octets that are in no delivered unit yet.
    pub(crate) fn hold_back(&self) -> bool {
        self.holding > 0
    }

    pub(crate) fn segment(&mut self, segment: &Segment<'_>, sink: &mut dyn Sink) {
        let Segment { src, dst, .. } = segment;
        let (slot, of_rival) = match self.owner(segment) {
            Owner::Known(network, Some(Place::Open(slot))) => self.take(slot, network, segment, sink),
            Owner::Known(network, Some(Place::Past(past))) => match past.sees(segment) {
                Afterwards::Nothing => return sink.packet(&Packet::of_segment(segment, past.number)),
                Afterwards::Late => {
                    self.dropped.late += 1;
                    return sink.packet(&Packet::of_segment(segment, past.number));
                }
                Afterwards::Another if self.may_resume(&past, network, segment) => {
                    let slot = self.go_on(&past, network, segment, sink);
                    self.take(slot, network, segment, sink)
                }
                Afterwards::Another => (self.open_new(network, segment, sink), false),
                Afterwards::Continues => (self.go_on(&past, network, segment, sink), false),
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
        if !of_rival
            && let Some(Some(connection)) = self.slots.get(slot)
            && connection.interrupted.is_some()
            && connection.past(true).sees(segment) == Afterwards::Nothing
        {
            return sink.packet(&Packet::of_segment(segment, connection.number));
        }
        let resumes = segment.syn && !segment.ack_flag && self.take_suspended(Suspended { peer: src.ip(), at: *dst });
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        if let Some(cost) = connection.interrupted.take_if(|_| !of_rival) {
            self.dropped.interruptions += cost.interruptions;
            self.dropped.others += cost.others;
        }
        let target = connection.or_rival(of_rival);
        sink.packet(&Packet::of_segment(segment, target.number));
        if let Some(watch) = target.watch.as_mut().filter(|_| resumes) {
            watch.resume();
        }
        let closes = target.segment(segment, sink) && !of_rival;
        // A suspended SDP connection closes TCP after the SuspCommAck.
        if (segment.fin || segment.rst)
            && let Some(suspended) = target.suspended().filter(|suspended| !self.suspended.contains(suspended))
        {
            self.suspended.push_back(suspended);
            self.suspended.drain(..self.suspended.len().saturating_sub(MOST_SUSPENDED));
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
        if self.memory > MOST_OCTETS {
            let may = |it: &Connection| it.number != number && it.memory > 0;
            self.put_aside(may, |all| all.memory <= MOST_OCTETS / 2, sink);
        }
    }

    /// Number and monitor of the connection of a segment that was just processed.
    pub(crate) fn watch_of(&mut self, segment: &Segment<'_>) -> Option<(StreamId, &mut Watch)> {
        let Located::Known { place: Some(Place::Open(slot)), .. } = self.table.find(segment) else { return None };
        let connection = self.slots.get_mut(slot)?.as_mut()?;
        let of_rival = connection.is_challenged_by(segment);
        let connection = connection.or_rival(of_rival);
        Some((connection.number, connection.watch.as_mut()?))
    }

    /// Returns whether a suspended connection matches `by`, and removes it from the list, because a
    /// connection resumes only once.
    fn take_suspended(&mut self, by: Suspended) -> bool {
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

    /// Creates a connection in a free slot. Returns the slot, and the record of an earlier
    /// connection with the same ports.
    fn open(
        &mut self,
        number: StreamId,
        ports: (SocketAddr, SocketAddr),
        at: (u16, Path),
        sink: &mut dyn Sink,
    ) -> (usize, Option<Box<Record>>) {
        if self.slots.len() - self.free.len() >= MOST_OPEN {
            self.put_aside(|_| true, |all| all.slots.len() - all.free.len() <= MOST_OPEN / 4 * 3, sink);
        }
        self.place(self.make(number, at.0, ports), at)
    }

    /// Creates a connection without octets. It is read as SDP if its ports require that.
    fn make(&self, number: StreamId, network: u16, ports: (SocketAddr, SocketAddr)) -> Box<Connection> {
        let mut connection = Connection::new(number, network, ports, (!self.unwatched).then(Watch::default));
        if self.sdp_ports.iter().any(|port| [ports.0.port(), ports.1.port()].contains(port)) {
            connection.directions.iter_mut().for_each(|direction| direction.reader.as_sdp = true);
        }
        Box::new(connection)
    }

    /// Puts a connection into a slot.
    fn place(&mut self, connection: Box<Connection>, at: (u16, Path)) -> (usize, Option<Box<Record>>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let Ends { src, dst, .. } = connection.directions[0].ends;
        self.slots[slot] = Some(connection);
        (slot, self.table.open((src, dst), at, slot))
    }

    /// The capture ends: delivers the remaining units of all connections, in the order of their
    /// numbers.
    pub(crate) fn finish(&mut self, sink: &mut dyn Sink) {
        let mut open: Vec<Box<Connection>> = std::mem::take(&mut self.slots).into_iter().flatten().collect();
        let rivals = open.iter_mut().filter_map(|connection| connection.rival.take());
        let rivals: Vec<_> = rivals.map(|rival| rival.connection).collect();
        open.extend(rivals);
        open.sort_by_key(|connection| connection.number);
        for connection in &mut open {
            connection.finish(sink);
        }
        let dropped = self.dropped();
        let Connections { next, unwatched, joined, .. } = *self;
        *self = Connections { next, unwatched, dropped, joined, ..Connections::default() };
    }
}
