//! [`RecentlyUsed`]: the state of a limited number of connections, in the order of their last use.
//!
//! Each operation needs the same time, independent of the number of connections. A connection that
//! is already stored needs no allocation.

use foldhash::HashMap;

use crate::stream_id::StreamId;

/// The state of connections. If there are too many connections, a new connection replaces the
/// closed connection that was idle for the longest time. If no connection is closed, it replaces
/// the open connection that was idle for the longest time.
#[derive(Debug)]
pub(super) struct RecentlyUsed<T> {
    /// Maximum number of connections.
    most: usize,
    entries: Vec<Entry<T>>,
    /// The index of each connection in `entries`.
    positions: HashMap<StreamId, usize>,
    open: Queue,
    closed: Queue,
}

/// A connection. The neighbours are in the same queue.
#[derive(Debug)]
struct Entry<T> {
    stream: StreamId,
    state: T,
    is_closed: bool,
    /// The index of the connection that was used directly before this one.
    older: Option<usize>,
    /// The index of the connection that was used directly after this one.
    newer: Option<usize>,
}

/// The ends of a list of entries. The list has the order of their last use.
#[derive(Debug, Default)]
struct Queue {
    oldest: Option<usize>,
    newest: Option<usize>,
}

impl<T> RecentlyUsed<T> {
    /// Creates a store for at most `most` connections. `most` is at least 1.
    pub(super) fn with_limit(most: usize) -> Self {
        RecentlyUsed {
            most,
            entries: Vec::new(),
            positions: HashMap::default(),
            open: Queue::default(),
            closed: Queue::default(),
        }
    }

    /// The state of a connection, which counts as used now. If the connection is not stored, `new`
    /// creates its state.
    pub(super) fn state(&mut self, stream: StreamId, new: impl FnOnce() -> T) -> &mut T {
        let position = match self.positions.get(&stream).copied() {
            Some(position) => {
                self.unlink(position);
                position
            }
            None => self.insert(stream, new()),
        };
        self.link(position);
        &mut self.entries[position].state
    }

    /// Records that the connection is closed.
    pub(super) fn close(&mut self, stream: StreamId) {
        let Some(position) = self.positions.get(&stream).copied() else { return };
        if !self.entries[position].is_closed {
            self.unlink(position);
            self.entries[position].is_closed = true;
            self.link(position);
        }
    }

    /// Adds a connection, which is not in a queue yet. Returns its index.
    fn insert(&mut self, stream: StreamId, state: T) -> usize {
        let entry = Entry { stream, state, is_closed: false, older: None, newer: None };
        let idlest = self.closed.oldest.or(self.open.oldest);
        let position = match idlest.filter(|_| self.entries.len() >= self.most) {
            Some(position) => {
                self.unlink(position);
                self.positions.remove(&self.entries[position].stream);
                self.entries[position] = entry;
                position
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.positions.insert(stream, position);
        position
    }

    /// Adds an entry to the end of its queue.
    fn link(&mut self, position: usize) {
        let queue = if self.entries[position].is_closed { &mut self.closed } else { &mut self.open };
        let older = queue.newest.replace(position);
        match older {
            Some(older) => self.entries[older].newer = Some(position),
            None => queue.oldest = Some(position),
        }
        let entry = &mut self.entries[position];
        (entry.older, entry.newer) = (older, None);
    }

    /// Removes an entry from its queue.
    fn unlink(&mut self, position: usize) {
        let Entry { is_closed, older, newer, .. } = self.entries[position];
        let queue = if is_closed { &mut self.closed } else { &mut self.open };
        if queue.oldest == Some(position) {
            queue.oldest = newer;
        }
        if queue.newest == Some(position) {
            queue.newest = older;
        }
        if let Some(older) = older {
            self.entries[older].newer = newer;
        }
        if let Some(newer) = newer {
            self.entries[newer].older = older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the connections in their order. The state of a connection is the index of its first use
    /// since it was stored.
    fn states(store: &mut RecentlyUsed<usize>, streams: &[u32]) -> Vec<usize> {
        let numbered = streams.iter().enumerate();
        numbered.map(|(index, stream)| *store.state((*stream).into(), || index)).collect()
    }

    #[test]
    fn the_longest_idle_connection_is_replaced_first() {
        let mut store = RecentlyUsed::with_limit(3);
        // Connection 0 is used again, so connection 1 is replaced by 3, and then 2 by 1.
        assert_eq!(states(&mut store, &[0, 1, 2, 0, 3, 0, 1, 0, 2]), [0, 1, 2, 0, 4, 0, 6, 0, 8]);
        assert_eq!((store.entries.len(), store.positions.len()), (3, 3));
    }

    #[test]
    fn closed_connections_are_replaced_before_open_ones() {
        let mut store = RecentlyUsed::with_limit(3);
        states(&mut store, &[0, 1, 2]);
        [2, 1, 1].into_iter().for_each(|stream: u32| store.close(stream.into()));
        // Connections 3 and 4 replace 2 and 1. Connection 5 then replaces 0.
        assert_eq!(states(&mut store, &[3, 4, 0, 3, 4, 5]), [0, 1, 0, 0, 1, 5]);
        assert_eq!(states(&mut store, &[0]), [0]);
        let order = |queue: &Queue| {
            let entries = std::iter::successors(queue.oldest, |at| store.entries[*at].newer);
            entries.map(|at| u32::from(store.entries[at].stream)).collect::<Vec<_>>()
        };
        assert_eq!((order(&store.open), order(&store.closed)), (vec![4, 5, 0], vec![]));
    }

    #[test]
    fn a_closed_connection_that_is_used_becomes_the_newest_closed_one() {
        let mut store = RecentlyUsed::with_limit(2);
        states(&mut store, &[0, 1]);
        [0, 1].into_iter().for_each(|stream: u32| store.close(stream.into()));
        // Connection 0 is used after its end, so connection 2 replaces 1, and 3 replaces 0.
        assert_eq!(states(&mut store, &[0, 2, 0, 3, 2]), [0, 1, 0, 3, 1]);
    }

    #[test]
    fn an_unknown_connection_cannot_be_closed() {
        let mut store = RecentlyUsed::<()>::with_limit(1);
        store.close(7.into());
        assert!(store.positions.is_empty());
    }
}
