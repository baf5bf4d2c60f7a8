//! A record of all traffic between a tester and its target, in order. If the traffic belongs to a
//! [`Device`](super::Device), the record shows the device as the tester.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::traffic_store::TrafficStore;
use crate::time::Instant;

/// The side that sent the recorded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The tester.
    ToTarget,
    /// The target.
    FromTarget,
}

/// The content of one recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventContent {
    /// The TCP handshake is complete. This is always the first event of a connection. Its direction
    /// is `ToTarget` if the tester connected.
    Connected {
        /// The tester's address.
        tester: SocketAddr,
        /// The target's address.
        target: SocketAddr,
    },
    /// Bytes of the TCP stream, as one write accepted them or one read returned them. The
    /// boundaries of TCP segments can be different.
    Octets(Bytes),
    /// A UDP datagram. It belongs to no connection.
    Datagram {
        /// The tester's address.
        tester: SocketAddr,
        /// The target's address.
        target: SocketAddr,
        /// Payload of the datagram.
        octets: Bytes,
    },
    /// The sender closed its half of the connection.
    Fin,
    /// The sender aborted the connection.
    Reset,
    /// The place of the payload that a full traffic log dropped. The time of the event is the time
    /// of the first dropped event.
    Dropped(DroppedOctets),
}

/// The payload of one direction that a full [`TrafficLog`] dropped. It belongs to one connection,
/// in which it is one contiguous range of bytes. Datagrams have a separate count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedOctets {
    /// Whether the payload is that of datagrams, which belong to no connection.
    pub datagrams: bool,
    /// Number of dropped events.
    pub events: u64,
    /// Number of dropped bytes.
    pub octets: u64,
    /// CRC32c of the dropped bytes, in their order ([`weft_core::crc::crc32c`]).
    pub crc: u32,
    /// When the tester sent or received the last of these events.
    pub until: Instant,
}

/// One entry of a [`TrafficLog`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficEvent {
    /// When the tester sent or received the event, on the link's clock.
    pub at: Instant,
    /// The number of the connection on its link, from 0.
    pub connection: u32,
    /// The side that sent the event.
    pub direction: Direction,
    /// The content of the event.
    pub content: EventContent,
}

/// The record of one link or device, over all its connections. Clones share the record. A
/// [live](TrafficLog::live) traffic log stores nothing and passes each event to a callback.
///
/// A traffic log stores events up to a limit. If it is full, it keeps the first events, the newest
/// events, and the start and the end of each connection. It drops the events in between. For each
/// connection and direction, it counts the dropped bytes and computes their CRC32c
/// ([`EventContent::Dropped`]).
#[derive(Debug, Clone)]
pub struct TrafficLog(Arc<Mutex<Inner>>);

struct Inner {
    store: TrafficStore,
    /// The number for the next [`Track`].
    connections: u32,
    reader: Option<Reader>,
}

/// The content of a [`TrafficLog`] at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedTraffic {
    /// The stored events, in the order in which the tester sent or received them. They share the
    /// payload bytes with the traffic log.
    pub events: Vec<TrafficEvent>,
    /// Index of the first event that the callback of [`TrafficLog::on_overflow`] has not received.
    /// 0 if the traffic log was never full.
    pub unread: usize,
    /// Number of events that the traffic log dropped, because it was full.
    pub lost: u64,
}

/// The callback of a [live](TrafficLog::live) traffic log.
type Reader = Box<dyn FnMut(&TrafficEvent) + Send>;

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrafficLog")
            .field("connections", &self.connections)
            .field("lost", &self.store.lost())
            .finish_non_exhaustive()
    }
}

/// Records the events of one connection in a traffic log.
#[derive(Debug)]
pub(super) struct Track {
    traffic: TrafficLog,
    number: u32,
}

impl Track {
    pub(super) fn record(&self, at: Instant, direction: Direction, content: EventContent) {
        self.traffic.record(at, self.number, direction, content);
    }
}

impl TrafficLog {
    /// The default limit of a traffic log in bytes: 64 MiB.
    pub const DEFAULT_ROOM: usize = 64 << 20;

    /// Creates an empty traffic log that stores about `room` bytes.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        let store = TrafficStore::with_room(room);
        TrafficLog(Arc::new(Mutex::new(Inner { store, connections: 0, reader: None })))
    }

    /// Sets the number of bytes that the traffic log can still store.
    pub fn set_room(&self, room: usize) {
        self.lock().store.set_room(room);
    }

    /// Sets a callback for a full traffic log. Before the traffic log drops its first event, it
    /// calls `reader` with its first events. From then on, it calls `reader` with each event that
    /// is no longer among the newest events, and with whether it keeps this event. So `reader`
    /// receives each event once, in order, except the newest events ([`RecordedTraffic::unread`]).
    /// The traffic waits until `reader` returns.
    pub fn on_overflow(&self, reader: impl FnMut(&TrafficEvent, bool) + Send + 'static) {
        self.lock().store.on_overflow(Box::new(reader));
    }

    /// Creates a traffic log that stores nothing. It calls `reader` with each event as it happens,
    /// one event at a time. The traffic waits until `reader` returns.
    #[must_use]
    pub fn live(reader: impl FnMut(&TrafficEvent) + Send + 'static) -> Self {
        let traffic = TrafficLog::with_room(0);
        traffic.lock().reader = Some(Box::new(reader));
        traffic
    }

    /// Starts the record of one more connection, under a number that is unique in this traffic log.
    pub(super) fn track(&self) -> Track {
        let mut inner = self.lock();
        let number = inner.connections;
        inner.connections = number.wrapping_add(1);
        Track { traffic: self.clone(), number }
    }

    pub(super) fn record(&self, at: Instant, connection: u32, direction: Direction, content: EventContent) {
        let mut inner = self.lock();
        if let Some(reader) = &mut inner.reader {
            return reader(&TrafficEvent { at, connection, direction, content });
        }
        inner.store.push(TrafficEvent { at, connection, direction, content });
    }

    /// Returns a copy of the stored events, in the order in which the tester sent or received them.
    /// The copy shares the payload bytes with the traffic log.
    #[must_use]
    pub fn events(&self) -> Vec<TrafficEvent> {
        self.lock().store.events()
    }

    /// Returns a copy of the stored events, and what the traffic log dropped.
    #[must_use]
    pub fn recorded(&self) -> RecordedTraffic {
        let inner = self.lock();
        RecordedTraffic { events: inner.store.events(), unread: inner.store.unread(), lost: inner.store.lost() }
    }

    /// Returns the number of events that the traffic log dropped, because it was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lock().store.lost()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // If a holder of the lock panicked, the stored events are still complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for TrafficLog {
    fn default() -> Self {
        TrafficLog::with_room(TrafficLog::DEFAULT_ROOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_log_passes_events_on_and_stores_none() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reader = Arc::clone(&seen);
        let traffic = TrafficLog::live(move |event| reader.lock().unwrap().push(event.content.clone()));
        traffic.record(Instant::ORIGIN, 0, Direction::ToTarget, EventContent::Octets(Bytes::from_static(b"octets")));
        traffic.record(Instant::ORIGIN, 0, Direction::FromTarget, EventContent::Fin);
        assert_eq!(*seen.lock().unwrap(), [EventContent::Octets(Bytes::from_static(b"octets")), EventContent::Fin]);
        assert_eq!((traffic.events(), traffic.lost()), (Vec::new(), 0));
    }
}
