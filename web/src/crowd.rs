//! The connections that are open: which of them are idle, and which has been so longest.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// A part of all connections that may come before those that have to leave for them are gone: whoever comes does not wait
/// for that.
const SPARE: usize = 16;
/// If no connection is idle, one is looked for this often.
const LOOK: Duration = Duration::from_millis(100);

/// All open connections.
#[derive(Debug)]
pub(crate) struct Crowd {
    most: usize,
    room: Arc<Semaphore>,
    /// Those that were not asked to leave.
    open: Arc<Mutex<Vec<Arc<State>>>>,
    clock: Arc<AtomicU64>,
}

/// A connection's place among them; dropped, it is free.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) state: Arc<State>,
    open: Arc<Mutex<Vec<Arc<State>>>>,
    _permit: OwnedSemaphorePermit,
}

/// What a connection does.
#[derive(Debug)]
pub(crate) struct State {
    /// Requests under way.
    busy: AtomicUsize,
    /// When it became idle, in steps of the clock that all share.
    since: AtomicU64,
    clock: Arc<AtomicU64>,
    /// It was asked to end.
    pub(crate) leave: Notify,
}

/// A request under way.
pub(crate) struct Busy(Arc<State>);

impl Crowd {
    /// `most` connections.
    pub(crate) fn new(most: usize) -> Self {
        let room = Arc::new(Semaphore::new(most + most.div_ceil(SPARE)));
        Crowd { most, room, open: Arc::default(), clock: Arc::default() }
    }

    /// A seat for one more. If there are too many, the connection that has been idle longest has to leave.
    pub(crate) async fn join(&self) -> Seat {
        if held(&self.open).len() >= self.most {
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
        held(&self.open).push(Arc::clone(&state));
        Seat { state, open: Arc::clone(&self.open), _permit: permit }
    }

    fn end_an_idle_one(&self) {
        let mut open = held(&self.open);
        let idle = open.iter().enumerate().filter(|(_, state)| state.busy.load(Relaxed) == 0);
        let longest = idle.min_by_key(|(_, state)| state.since.load(Relaxed)).map(|(at, _)| at);
        if let Some(at) = longest {
            // It is not asked twice.
            open.swap_remove(at).leave.notify_one();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        held(&self.open).retain(|other| !Arc::ptr_eq(other, &self.state));
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

/// Nothing under this lock panics.
fn held(open: &Mutex<Vec<Arc<State>>>) -> std::sync::MutexGuard<'_, Vec<Arc<State>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_one_that_was_idle_longest_leaves() {
        let crowd = Crowd::new(3);
        let (busy, first, second) = (crowd.join().await, crowd.join().await, crowd.join().await);
        let _request = Busy::begin(&busy.state);
        // The first one had a request since the second one came.
        drop(Busy::begin(&first.state));
        let left = Arc::clone(&second.state);
        let leaving = async {
            left.leave.notified().await;
            drop(second);
        };
        let (seat, ()) = tokio::join!(crowd.join(), leaving);
        assert_eq!(held(&crowd.open).len(), 3);
        drop((seat, first, busy));
        assert!(held(&crowd.open).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_is_never_ended() {
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
