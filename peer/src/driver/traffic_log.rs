//! A record of all traffic between a tester and its target, in order. If the traffic belongs to a
//! [`Device`](super::Device), the record shows the device as the tester.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

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

/// The record of one link or device, over all its connections. Clones share the record. A traffic
/// log stores events up to a limit. Further events are only counted. A [live](TrafficLog::live)
/// traffic log stores nothing and passes each event to a callback.
#[derive(Debug, Clone)]
pub struct TrafficLog(Arc<Mutex<Inner>>);

struct Inner {
    events: Vec<TrafficEvent>,
    room: usize,
    lost: u64,
    /// The number for the next [`Track`].
    connections: u32,
    reader: Option<Reader>,
}

/// The callback of a [live](TrafficLog::live) traffic log.
type Reader = Box<dyn FnMut(&TrafficEvent) + Send>;

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrafficLog")
            .field("events", &self.events.len())
            .field("lost", &self.lost)
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

/// Memory in bytes that each event needs in addition to its payload. Because of this number, the
/// limit also applies to many tiny reads. The number covers the event, the header of the event's
/// allocation, and the packet and the transcript line that weft makes from the event.
const EVENT_COST: usize = 512;

impl TrafficLog {
    /// The default limit of a traffic log in bytes: 64 MiB.
    pub const DEFAULT_ROOM: usize = 64 << 20;

    /// Creates an empty traffic log that stores about `room` bytes.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        TrafficLog(Arc::new(Mutex::new(Inner { events: Vec::new(), room, lost: 0, connections: 0, reader: None })))
    }

    /// Sets the number of bytes that the traffic log can still store.
    pub fn set_room(&self, room: usize) {
        self.lock().room = room;
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
        let cost = EVENT_COST
            + match &content {
                EventContent::Octets(octets) | EventContent::Datagram { octets, .. } => octets.len(),
                _ => 0,
            };
        if cost > inner.room {
            inner.lost += 1;
            return;
        }
        inner.room -= cost;
        inner.events.push(TrafficEvent { at, connection, direction, content });
    }

    /// Returns a copy of all events so far, in the order in which the tester sent or received them.
    /// The copy shares the payload bytes with the traffic log.
    #[must_use]
    pub fn events(&self) -> Vec<TrafficEvent> {
        self.lock().events.clone()
    }

    /// Returns the number of events that exceeded the limit. The evidence is complete only if this
    /// number is 0.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lock().lost
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
    fn counts_events_beyond_its_limit() {
        let traffic = TrafficLog::with_room(2 * EVENT_COST + 10);
        let octets = |n| EventContent::Octets(Bytes::from(vec![0; n]));
        for content in [octets(8), octets(8), octets(2), EventContent::Fin] {
            traffic.record(Instant::ORIGIN, 0, Direction::ToTarget, content);
        }
        let kept: Vec<EventContent> = traffic.clone().events().into_iter().map(|event| event.content).collect();
        assert_eq!((kept, traffic.lost()), (vec![octets(8), octets(2)], 2));
    }

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
