//! Tasks that wait for one event. The event wakes all of them, and each task then checks its
//! condition.
//!
//! All calls happen under the lock of a [`Device`](super::Device). If the condition of a task is
//! false, the task registers before it releases the lock. Therefore the task cannot miss an event.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

/// The number for the next ticket. Tickets are unique across all lists, so a ticket of one list
/// removes nothing from another list.
static TICKETS: AtomicU64 = AtomicU64::new(0);

/// Identifies one registration of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

#[derive(Debug, Default)]
pub(super) struct Waiters(Vec<(Ticket, Waker)>);

impl Waiters {
    /// Registers a task until the next [`wake`](Self::wake).
    pub(super) fn join(&mut self, waker: &Waker) -> Ticket {
        let ticket = Ticket(TICKETS.fetch_add(1, Ordering::Relaxed));
        self.0.push((ticket, waker.clone()));
        ticket
    }

    /// Removes a registration. It does not matter whether the task was woken.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.0.retain(|(waiting, _)| *waiting != ticket);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn wake(&mut self) {
        self.0.drain(..).for_each(|(_, waker)| waker.wake());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_are_woken_once_but_who_left() {
        let woken: [Arc<Woken>; 3] = Default::default();
        let (mut waiters, mut others) = (Waiters::default(), Waiters::default());
        let tickets = woken.each_ref().map(|woken| waiters.join(&Arc::clone(woken).into()));
        let other = others.join(&Arc::clone(&woken[2]).into());
        // A ticket of another list removes nothing here.
        waiters.leave(other);
        waiters.leave(tickets[1]);
        for _ in 0..2 {
            waiters.wake();
            assert_eq!(woken.each_ref().map(|woken| woken.0.load(Ordering::Relaxed)), [1, 0, 1]);
        }
    }
}
