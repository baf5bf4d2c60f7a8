//! Limits the number of open connections. If too many are open, closes the connection that has been
//! idle longest.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::lock::locked;

/// For a short time, more connections than the limit can be open. A new connection therefore does
/// not wait until an idle connection has closed. The number of extra connections is the limit
/// divided by this number.
const SPARE: usize = 16;
/// Interval between two searches for an idle connection while all connections are busy.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// All open connections.
#[derive(Debug)]
pub(crate) struct OpenConnections {
    most: usize,
    permits: Arc<Semaphore>,
    /// The open connections, without those that were notified to close.
    open: Arc<Mutex<Vec<Arc<State>>>>,
    clock: Arc<AtomicU64>,
}

/// An admitted connection. Dropping the slot allows another connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) state: Arc<State>,
    open: Arc<Mutex<Vec<Arc<State>>>>,
    _permit: OwnedSemaphorePermit,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct State {
    /// Number of requests in progress.
    busy: AtomicUsize,
    /// Value of `clock` when the connection became idle. The connection with the lowest value has
    /// been idle longest.
    since: AtomicU64,
    clock: Arc<AtomicU64>,
    /// Notified when the connection must close.
    pub(crate) close: Notify,
}

/// A request in progress.
pub(crate) struct ActiveRequest(Arc<State>);

impl OpenConnections {
    pub(crate) fn new(most: usize) -> Self {
        let permits = Arc::new(Semaphore::new(most + most.div_ceil(SPARE)));
        OpenConnections { most, permits, open: Arc::default(), clock: Arc::default() }
    }

    /// Adds a connection. If too many are open, closes the connection that has been idle longest.
    /// Waits while all connections are busy and no slot is free.
    pub(crate) async fn admit(&self) -> ConnectionSlot {
        if locked(&self.open).len() >= self.most {
            self.close_longest_idle();
        }
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
                break permit;
            }
            self.close_longest_idle();
            // The semaphore is never closed.
            if let Ok(Ok(permit)) = tokio::time::timeout(POLL_INTERVAL, Arc::clone(&self.permits).acquire_owned()).await
            {
                break permit;
            }
        };
        let state = Arc::new(State {
            busy: AtomicUsize::new(0),
            since: AtomicU64::new(self.clock.fetch_add(1, Relaxed)),
            clock: Arc::clone(&self.clock),
            close: Notify::new(),
        });
        locked(&self.open).push(Arc::clone(&state));
        ConnectionSlot { state, open: Arc::clone(&self.open), _permit: permit }
    }

    fn close_longest_idle(&self) {
        let mut open = locked(&self.open);
        let idle = open.iter().enumerate().filter(|(_, state)| state.busy.load(Relaxed) == 0);
        let longest = idle.min_by_key(|(_, state)| state.since.load(Relaxed)).map(|(at, _)| at);
        if let Some(at) = longest {
            // Remove the connection from the list. Otherwise it could be notified again.
            open.swap_remove(at).close.notify_one();
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        locked(&self.open).retain(|other| !Arc::ptr_eq(other, &self.state));
    }
}

impl ActiveRequest {
    pub(crate) fn begin(state: &Arc<State>) -> Self {
        state.busy.fetch_add(1, Relaxed);
        ActiveRequest(Arc::clone(state))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.since.store(self.0.clock.fetch_add(1, Relaxed), Relaxed);
        self.0.busy.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn closes_the_longest_idle_connection() {
        let open_connections = OpenConnections::new(3);
        let (busy, first, second) =
            (open_connections.admit().await, open_connections.admit().await, open_connections.admit().await);
        let _request = ActiveRequest::begin(&busy.state);
        // The first connection has a request after the second connection opens. So the second
        // connection has been idle longest.
        drop(ActiveRequest::begin(&first.state));
        let left = Arc::clone(&second.state);
        let closing = async {
            left.close.notified().await;
            drop(second);
        };
        let (slot, ()) = tokio::join!(open_connections.admit(), closing);
        assert_eq!(locked(&open_connections.open).len(), 3);
        drop((slot, first, busy));
        assert!(locked(&open_connections.open).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn never_closes_a_connection_with_a_request() {
        let open_connections = OpenConnections::new(1);
        let slot = open_connections.admit().await;
        let request = ActiveRequest::begin(&slot.state);
        let spare = open_connections.admit().await;
        let _other = ActiveRequest::begin(&spare.state);
        assert!(tokio::time::timeout(10 * POLL_INTERVAL, open_connections.admit()).await.is_err());
        drop(request);
        let state = Arc::clone(&slot.state);
        let closing = async {
            state.close.notified().await;
            drop(slot);
        };
        tokio::join!(open_connections.admit(), closing);
    }
}
