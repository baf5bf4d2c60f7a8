//! The connections of a capture: open ones, ended ones, and the limit on their number.
//!
//! **Memory.** All remaining units of a connection are delivered, and everything but its
//! [`Past`](crate::tcp::Past) is dropped, when
//!
//! * its ports are used again;
//! * it was closed (RST, or FIN from both ends) and [`LINGERING`](limits::LINGERING) others were
//!   closed since: late repetitions change nothing.
//!
//! It is put aside when
//!
//! * more than [`MOST_OPEN`] are being read;
//! * all together keep more than [`MOST_OCTETS`]; the connection that just received a segment is
//!   never put aside for this reason.
//!
//! Connections without MPA and SDP go first, and of these the ones that are idle for longest. A
//! [`Record`] of a connection with MPA or SDP is kept.
//!
//! If a finished connection receives new octets, it continues under its number: from its record,
//! else like a connection whose beginning was not captured. [`Dropped`] counts the cost. A segment
//! that does not fit a connection put aside does not replace it while there is a record to resume
//! from. It starts a [`rival`], as with a connection that is being read.
//!
//! **Equal ports in several networks.** The first segment of another VLAN, tunnel or interface may
//! have the ports of a known connection. It is then a copy of a segment, the other direction of the
//! connection, or part of another connection. It counts as part of the connection if its sequence
//! numbers fit, until a segment repeats a known sequence number. If that segment has the same
//! octets it is a copy; with other octets it begins another connection. [`Joined`] counts the
//! copies.
//!
//! **Ports that are used again.** A SYN with another sequence number begins another connection. If
//! the SYN was not captured, the sequence numbers decide: they are far from those of the connection
//! before. If that one is not closed, both are kept until [`rival`] distinguishes them by segments
//! that belong to neither.

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
    /// Number of assigned connection numbers.
    next: StreamId,
    /// Octets that the open connections keep.
    memory: usize,
    /// Number of open connections that hold octets back.
    holding: usize,
    /// Closed ones, oldest first: slot and number.
    closed: VecDeque<(usize, StreamId)>,
    /// Connections that were suspended and not resumed, oldest first.
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

    /// Octets that the open ones keep.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Bytes of memory of all connections, approximately.
    pub(crate) fn memory_of_all(&self) -> usize {
        self.memory + (self.slots.len() - self.free.len()) * CONNECTION + self.table.memory()
    }

    /// The cost of the memory limits.
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

    /// Are there octets that no unit was delivered for?
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
        // TCP ends after the SuspCommAck.
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

    /// The connection that a segment, just processed, belongs to: its number and monitor.
    pub(crate) fn watch_of(&mut self, segment: &Segment<'_>) -> Option<(StreamId, &mut Watch)> {
        let Located::Known { place: Some(Place::Open(slot)), .. } = self.table.find(segment) else { return None };
        let connection = self.slots.get_mut(slot)?.as_mut()?;
        let of_rival = connection.is_challenged_by(segment);
        let connection = connection.or_rival(of_rival);
        Some((connection.number, connection.watch.as_mut()?))
    }

    /// Does this connection resume a suspended one? Each is resumed once.
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

    /// A new connection in a slot of its own, and the record of the one that had its ports before.
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

    /// A connection without octets, read as its ports demand.
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
