//! The open connections, and since when they are idle.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// One part in this many may be open in addition, so that a new connection need not wait until the
/// closed one is gone.
const SPARE: usize = 16;
/// How often to look for an idle connection if there is none.
const LOOK: Duration = Duration::from_millis(100);

/// All open connections.
#[derive(Debug)]
pub(crate) struct Crowd {
    most: usize,
    room: Arc<Semaphore>,
    /// The connections without a request to close.
    open: Arc<Mutex<Vec<Arc<State>>>>,
    clock: Arc<AtomicU64>,
}

/// The place of a connection, which is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) state: Arc<State>,
    open: Arc<Mutex<Vec<Arc<State>>>>,
    _permit: OwnedSemaphorePermit,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct State {
    /// Requests in progress.
    busy: AtomicUsize,
    /// When it became idle, in steps of the shared clock.
    since: AtomicU64,
    clock: Arc<AtomicU64>,
    /// Asks it to close.
    pub(crate) leave: Notify,
}

/// A request in progress.
pub(crate) struct Busy(Arc<State>);

impl Crowd {
    pub(crate) fn new(most: usize) -> Self {
        let room = Arc::new(Semaphore::new(most + most.div_ceil(SPARE)));
        Crowd { most, room, open: Arc::default(), clock: Arc::default() }
    }

    /// Adds a connection. If there are too many, asks the longest idle one to close.
    pub(crate) async fn join(&self) -> Seat {
        if locked(&self.open).len() >= self.most {
            self.end_an_idle_one();
        }
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
                break permit;
            }
            self.end_an_idle_one();
            // The semaphore is never closed.
            if let Ok(Ok(permit)) = tokio::time::timeout(LOOK, Arc::clone(&self.room).acquire_owned()).await {
                break permit;
            }
        };
        let state = Arc::new(State {
            busy: AtomicUsize::new(0),
            since: AtomicU64::new(self.clock.fetch_add(1, Relaxed)),
            clock: Arc::clone(&self.clock),
            leave: Notify::new(),
        });
        locked(&self.open).push(Arc::clone(&state));
        Seat { state, open: Arc::clone(&self.open), _permit: permit }
    }

    fn end_an_idle_one(&self) {
        let mut open = locked(&self.open);
        let idle = open.iter().enumerate().filter(|(_, state)| state.busy.load(Relaxed) == 0);
        let longest = idle.min_by_key(|(_, state)| state.since.load(Relaxed)).map(|(at, _)| at);
        if let Some(at) = longest {
            // Removed, so that it gets only one request to close.
            open.swap_remove(at).leave.notify_one();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.open).retain(|other| !Arc::ptr_eq(other, &self.state));
    }
}

impl Busy {
    pub(crate) fn begin(state: &Arc<State>) -> Self {
        state.busy.fetch_add(1, Relaxed);
        Busy(Arc::clone(state))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.since.store(self.0.clock.fetch_add(1, Relaxed), Relaxed);
        self.0.busy.fetch_sub(1, Relaxed);
    }
}

/// No code under this lock panics.
fn locked(open: &Mutex<Vec<Arc<State>>>) -> std::sync::MutexGuard<'_, Vec<Arc<State>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn closes_the_longest_idle_connection() {
        let crowd = Crowd::new(3);
        let (busy, first, second) = (crowd.join().await, crowd.join().await, crowd.join().await);
        let _request = Busy::begin(&busy.state);
        // The first connection had a request after the second one opened.
        drop(Busy::begin(&first.state));
        let left = Arc::clone(&second.state);
        let leaving = async {
            left.leave.notified().await;
            drop(second);
        };
        let (seat, ()) = tokio::join!(crowd.join(), leaving);
        assert_eq!(locked(&crowd.open).len(), 3);
        drop((seat, first, busy));
        assert!(locked(&crowd.open).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn never_closes_a_connection_with_a_request() {
        let crowd = Crowd::new(1);
        let seat = crowd.join().await;
        let request = Busy::begin(&seat.state);
        let spare = crowd.join().await;
        let _other = Busy::begin(&spare.state);
        assert!(tokio::time::timeout(10 * LOOK, crowd.join()).await.is_err());
        drop(request);
        let state = Arc::clone(&seat.state);
        let leaving = async {
            state.leave.notified().await;
            drop(seat);
        };
        tokio::join!(crowd.join(), leaving);
    }
}
