//! A record of all traffic between a tester and its target, in order. If the traffic belongs to a
//! [`Device`](super::Device), the device counts as the tester.

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
pub enum What {
    /// The TCP handshake is complete. This is always the first event of a connection. Its direction
    /// is `ToTarget` if the tester connected.
    Connected {
        /// The tester's address.
        tester: SocketAddr,
        /// The target's address.
        target: SocketAddr,
    },
    /// Bytes of the TCP stream, as one write accepted them or one read returned them. TCP may have
    /// used different segment boundaries.
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

/// One entry of a [`Tape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeEvent {
    /// When the tester sent or received the event, on the link's clock.
    pub at: Instant,
    /// The number of the connection on its link, from 0.
    pub connection: u32,
    /// The side that sent the event.
    pub direction: Direction,
    /// The content of the event.
    pub what: What,
}

/// The record of one link or device, over all its connections. Clones share the record. A tape
/// stores events up to a limit and then only counts them. A [live](Tape::live) tape stores nothing
/// and passes each event to a callback.
#[derive(Debug, Clone)]
pub struct Tape(Arc<Mutex<Inner>>);

struct Inner {
    events: Vec<TapeEvent>,
    room: usize,
    lost: u64,
    /// The number for the next [`Track`].
    connections: u32,
    reader: Option<Reader>,
}

/// The callback of a [live](Tape::live) tape.
type Reader = Box<dyn FnMut(&TapeEvent) + Send>;

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").field("events", &self.events.len()).field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// Records the events of one connection on a tape.
#[derive(Debug)]
pub(super) struct Track {
    tape: Tape,
    number: u32,
}

impl Track {
    pub(super) fn record(&self, at: Instant, direction: Direction, what: What) {
        self.tape.record(at, self.number, direction, what);
    }
}

/// Memory in bytes that an event costs besides its payload, so that many tiny reads are limited
/// too. This covers the event, the header of its allocation, and the packet and transcript line
/// that are made from it.
const EVENT_COST: usize = 512;

impl Tape {
    /// The default limit of a tape in bytes: 64 MiB.
    pub const DEFAULT_ROOM: usize = 64 << 20;

    /// An empty tape that stores about `room` bytes.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        Tape(Arc::new(Mutex::new(Inner { events: Vec::new(), room, lost: 0, connections: 0, reader: None })))
    }

    /// A tape that stores nothing. It calls `reader` with each event as it happens, one event at a
    /// time. The traffic waits until `reader` returns.
    #[must_use]
    pub fn live(reader: impl FnMut(&TapeEvent) + Send + 'static) -> Self {
        let tape = Tape::with_room(0);
        tape.lock().reader = Some(Box::new(reader));
        tape
    }

    /// Starts the record of one more connection, under a number that is unique on this tape.
    pub(super) fn track(&self) -> Track {
        let mut inner = self.lock();
        let number = inner.connections;
        inner.connections = number.wrapping_add(1);
        Track { tape: self.clone(), number }
    }

    pub(super) fn record(&self, at: Instant, connection: u32, direction: Direction, what: What) {
        let mut inner = self.lock();
        if let Some(reader) = &mut inner.reader {
            return reader(&TapeEvent { at, connection, direction, what });
        }
        let cost = EVENT_COST
            + match &what {
                What::Octets(octets) | What::Datagram { octets, .. } => octets.len(),
                _ => 0,
            };
        if cost > inner.room {
            inner.lost += 1;
            return;
        }
        inner.room -= cost;
        inner.events.push(TapeEvent { at, connection, direction, what });
    }

    /// A copy of all events so far, in the order in which the tester sent or received them. The
    /// copy shares the payload bytes with the tape.
    #[must_use]
    pub fn events(&self) -> Vec<TapeEvent> {
        self.lock().events.clone()
    }

    /// Number of events that did not fit. The evidence is complete only if this is 0.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lock().lost
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // If a holder of the lock panicked, the stored events are still complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Tape {
    fn default() -> Self {
        Tape::with_room(Tape::DEFAULT_ROOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_tape_counts_what_it_loses() {
        let tape = Tape::with_room(2 * EVENT_COST + 10);
        let octets = |n| What::Octets(Bytes::from(vec![0; n]));
        for what in [octets(8), octets(8), octets(2), What::Fin] {
            tape.record(Instant::ORIGIN, 0, Direction::ToTarget, what);
        }
        let kept: Vec<What> = tape.clone().events().into_iter().map(|event| event.what).collect();
        assert_eq!((kept, tape.lost()), (vec![octets(8), octets(2)], 2));
    }

    #[test]
    fn a_live_tape_hands_on_and_keeps_nothing() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reader = Arc::clone(&seen);
        let tape = Tape::live(move |event| reader.lock().unwrap().push(event.what.clone()));
        tape.record(Instant::ORIGIN, 0, Direction::ToTarget, What::Octets(Bytes::from_static(b"octets")));
        tape.record(Instant::ORIGIN, 0, Direction::FromTarget, What::Fin);
        assert_eq!(*seen.lock().unwrap(), [What::Octets(Bytes::from_static(b"octets")), What::Fin]);
        assert_eq!((tape.events(), tape.lost()), (Vec::new(), 0));
    }
}
