//! Records all traffic between a tester and its target, in order. For a [`Device`](super::Device),
//! this side is the tester.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::time::Instant;

/// The sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The tester.
    ToTarget,
    /// The target.
    FromTarget,
}

/// One recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// TCP's handshake is done. Always the first event of a connection, with direction `ToTarget`
    /// when the tester connected.
    Connected {
        /// The tester's address.
        tester: SocketAddr,
        /// The target's address.
        target: SocketAddr,
    },
    /// Octets of the stream, as one write took them or one read gave them; TCP may have cut them
    /// otherwise.
    Octets(Bytes),
    /// A UDP datagram, of no connection.
    Datagram {
        /// The tester's address.
        tester: SocketAddr,
        /// The target's address.
        target: SocketAddr,
        /// What it carries.
        octets: Bytes,
    },
    /// The sender closed its half.
    Fin,
    /// The sender aborted the connection.
    Reset,
}

/// One entry of a [`Tape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeEvent {
    /// When the tester sent or saw it, on the link's clock.
    pub at: Instant,
    /// Which connection of the link: 0 is the first.
    pub connection: u32,
    /// The sender.
    pub direction: Direction,
    /// What it was.
    pub what: What,
}

/// The record of one link or device, over all its connections; clones share it. Holds octets up to
/// a limit and then only counts them, or holds nothing and [hands each event on](Tape::live).
#[derive(Debug, Clone)]
pub struct Tape(Arc<Mutex<Inner>>);

struct Inner {
    events: Vec<TapeEvent>,
    room: usize,
    lost: u64,
    /// Number of the next connection that asks for one.
    connections: u32,
    reader: Option<Reader>,
}

/// Whom a tape hands its events on to.
type Reader = Box<dyn FnMut(&TapeEvent) + Send>;

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").field("events", &self.events.len()).field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// One connection's part of a tape.
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

/// The cost of an event besides its bytes, so that a flood of tiny reads is bounded too: the event,
/// the header of its allocation, and the packet and transcript line that are made from it.
const EVENT_COST: usize = 512;

impl Tape {
    /// Octets that a tape holds by default: 64 MiB.
    pub const DEFAULT_ROOM: usize = 64 << 20;

    /// An empty tape for about `room` octets.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        Tape(Arc::new(Mutex::new(Inner { events: Vec::new(), room, lost: 0, connections: 0, reader: None })))
    }

    /// A tape that keeps nothing: `reader` is called with each event as it happens, one at a time.
    /// What it describes waits meanwhile.
    #[must_use]
    pub fn live(reader: impl FnMut(&TapeEvent) + Send + 'static) -> Self {
        let tape = Tape::with_room(0);
        tape.lock().reader = Some(Box::new(reader));
        tape
    }

    /// The part of one more connection, under a number that no other one got here.
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

    /// A copy of all events so far, in the order in which the tester sent or saw them. Octets are
    /// shared, not copied.
    #[must_use]
    pub fn events(&self) -> Vec<TapeEvent> {
        self.lock().events.clone()
    }

    /// Events that had no room; evidence is incomplete unless this is 0.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lock().lost
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A holder that panicked left complete events.
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
