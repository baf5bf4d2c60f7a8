//! Connections whose token is not verified yet (waiting connections). These connections have
//! separate slots. Therefore a client without the token cannot take a tester's slot.
//!
//! A new connection always gets a slot. If no slot is free, an older waiting connection loses its
//! slot. A tester sends its hello at once, so it needs the slot only for one round trip. A silent
//! client keeps its slot until another connection needs the slot.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_core::origin::Origin;

/// Maximum number of waiting connections.
const MAX_WAITING: usize = 64;
/// Maximum number of waiting connections of one origin.
const MAX_PER_ORIGIN: usize = 8;

/// All waiting connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    list: Vec<Entry>,
    last: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    origin: Origin,
    stream: Arc<TcpStream>,
}

/// The slot of one waiting connection. Dropping this value frees the slot.
#[derive(Debug)]
pub(super) struct WaitingSlot {
    all: Arc<Waiting>,
    number: u64,
}

impl Waiting {
    /// Gives a slot to a new connection. If the origin of the new connection already uses
    /// [`MAX_PER_ORIGIN`] slots, the oldest connection of this origin loses its slot. Otherwise, if
    /// all slots are in use, the agent selects the origin with the most waiting connections. The
    /// oldest connection of the selected origin loses its slot.
    pub(super) fn admit(self: &Arc<Self>, origin: Origin, stream: &Arc<TcpStream>) -> WaitingSlot {
        let mut entries = self.lock();
        let count = |origin: Origin| entries.list.iter().filter(|entry| entry.origin == origin).count();
        let crowded = if count(origin) >= MAX_PER_ORIGIN {
            Some(origin)
        } else if entries.list.len() >= MAX_WAITING {
            entries.list.iter().map(|entry| entry.origin).max_by_key(|origin| count(*origin))
        } else {
            None
        };
        if let Some(oldest) = entries.list.iter().position(|entry| Some(entry.origin) == crowded) {
            // The thread of the oldest connection now reads the end of the stream. If the shutdown
            // fails, the peer has already closed the connection.
            let _ = entries.list.remove(oldest).stream.shutdown(Shutdown::Read);
        }
        entries.last += 1;
        let number = entries.last;
        entries.list.push(Entry { number, origin, stream: Arc::clone(stream) });
        WaitingSlot { all: Arc::clone(self), number }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // A panic cannot interrupt a change of the list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingSlot {
    /// Returns whether another connection has taken the slot.
    pub(super) fn is_lost(&self) -> bool {
        !self.all.lock().list.iter().any(|entry| entry.number == self.number)
    }
}

impl Drop for WaitingSlot {
    fn drop(&mut self) {
        self.all.lock().list.retain(|entry| entry.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::of([192, 0, 2, last].into())
    }

    #[test]
    fn the_oldest_of_the_crowded_origin_loses_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let waiting = Arc::new(Waiting::default());
        let admit = |last| waiting.admit(origin(last), &stream);
        let other = admit(1);
        let of_one: Vec<_> = (0..=MAX_PER_ORIGIN).map(|_| admit(2)).collect();
        assert!(of_one[0].is_lost() && !of_one[1].is_lost() && !other.is_lost());
        // All slots are in use: the origins 3 to 57 have one connection each.
        let rest: Vec<_> = (3..=57).map(admit).collect();
        assert_eq!(waiting.lock().list.len(), MAX_WAITING);
        let newcomer = admit(58);
        assert!(of_one[1].is_lost() && !other.is_lost() && !newcomer.is_lost());
        assert!(rest.iter().all(|slot| !slot.is_lost()));
        drop((of_one, rest, other, newcomer));
        assert!(waiting.lock().list.is_empty());
    }
}
