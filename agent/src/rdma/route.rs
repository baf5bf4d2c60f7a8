//! Passes each asynchronous event of a device to the control connections that the event concerns.
//! librdmacm opens each device only once in a process, so all control connections share the
//! descriptor for the events of the device. Each reader of the descriptor can get events that
//! concern other control connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::{Event, Object};

/// Maximum number of events that wait for one control connection. Later events are dropped.
const MAX_EVENTS: usize = 1024;

/// A control connection that is registered with the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TesterId(u64);

/// The control connections that an event concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventOwner {
    /// The control connection that created the queue at this address.
    Element(usize),
    /// All control connections on the device.
    All,
}

/// All control connections of this process, with their queues and waiting events.
#[derive(Debug, Default)]
pub(super) struct Router {
    last: u64,
    testers: BTreeMap<TesterId, EventQueue>,
    /// Queues by address. Each entry has the control connection that created the queue, and the
    /// (RDMA) connection of the queue. A shared receive queue has no (RDMA) connection (`None`).
    elements: BTreeMap<usize, (TesterId, Option<Object>)>,
}

#[derive(Debug)]
struct EventQueue {
    device: usize,
    events: VecDeque<Event>,
    wake: rustix::fd::OwnedFd,
}

/// The router of this process.
static ROUTER: Mutex<Router> = Mutex::new(Router { last: 0, testers: BTreeMap::new(), elements: BTreeMap::new() });

/// Locks the router. A thread with this lock must not call a function that waits for the device,
/// such as the function that destroys a queue. That function returns only after all events of the
/// queue are acknowledged. The thread that acknowledges events needs this lock, so both threads
/// would wait forever.
pub(super) fn router() -> MutexGuard<'static, Router> {
    ROUTER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Router {
    /// Registers a control connection on a device. `wake` becomes readable when an event waits for
    /// this control connection.
    pub(super) fn join(&mut self, device: usize, wake: rustix::fd::OwnedFd) -> TesterId {
        self.last += 1;
        let tester = TesterId(self.last);
        self.testers.insert(tester, EventQueue { device, events: VecDeque::new(), wake });
        tester
    }

    pub(super) fn leave(&mut self, tester: TesterId) {
        self.testers.remove(&tester);
        self.elements.retain(|_, (owner, _)| *owner != tester);
    }

    /// Registers a queue, until [`unregister`](Self::unregister) removes it.
    pub(super) fn register(&mut self, element: usize, tester: TesterId, connection: Option<Object>) {
        self.elements.insert(element, (tester, connection));
    }

    pub(super) fn unregister(&mut self, element: usize) {
        self.elements.remove(&element);
    }

    /// Passes on an event that was read from the descriptor of `device`.
    pub(super) fn deliver(&mut self, device: usize, owner: EventOwner, kind: &str) {
        let event = |connection| Event::Asynchronous { kind: kind.to_owned(), connection };
        match owner {
            // If the queue of an event was destroyed in the meantime, the event is dropped.
            EventOwner::Element(element) => {
                let Some((tester, connection)) = self.elements.get(&element) else { return };
                if let Some(queue) = self.testers.get_mut(tester) {
                    queue.put(event(*connection));
                }
            }
            EventOwner::All => {
                self.testers.values_mut().filter(|queue| queue.device == device).for_each(|it| it.put(event(None)));
            }
        }
    }

    /// Removes and returns the events that wait for a control connection.
    pub(super) fn take(&mut self, tester: TesterId) -> Vec<Event> {
        let Some(queue) = self.testers.get_mut(&tester) else { return Vec::new() };
        if queue.events.is_empty() {
            return Vec::new();
        }
        // After this read, `wake` is no longer readable.
        let _ = rustix::io::read(&queue.wake, &mut [0; 8]);
        queue.events.drain(..).collect()
    }
}

impl EventQueue {
    fn put(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
        // If the write fails, `wake` is readable already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

    use super::*;

    fn wake() -> (rustix::fd::OwnedFd, rustix::fd::OwnedFd) {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        (wake.try_clone().unwrap(), wake)
    }

    fn is_woken(wake: &rustix::fd::OwnedFd) -> bool {
        poll(&mut [PollFd::new(wake, PollFlags::IN)], Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap()
            == 1
    }

    fn event(kind: &str, connection: Option<Object>) -> Event {
        Event::Asynchronous { kind: kind.to_owned(), connection }
    }

    #[test]
    fn an_event_reaches_its_connection_whichever_one_reads_it() {
        let mut router = Router::default();
        let [(first, mine), (second, other), (third, far)] = [wake(), wake(), wake()];
        let [first, second, third] = [router.join(1, first), router.join(1, second), router.join(2, third)];
        router.register(100, first, Some(7));
        router.register(200, second, None);
        router.deliver(1, EventOwner::Element(100), "qp_fatal");
        assert_eq!([is_woken(&mine), is_woken(&other), is_woken(&far)], [true, false, false]);
        assert_eq!(router.take(first), [event("qp_fatal", Some(7))]);
        assert!(!is_woken(&mine) && router.take(second).is_empty());
        router.deliver(1, EventOwner::Element(200), "srq_limit_reached");
        router.deliver(1, EventOwner::All, "port_err");
        assert_eq!(router.take(first), [event("port_err", None)]);
        assert_eq!(router.take(second), [event("srq_limit_reached", None), event("port_err", None)]);
        assert!(router.take(third).is_empty());
    }

    #[test]
    fn a_released_object_gets_no_more_events_and_an_idle_reader_keeps_few() {
        let mut router = Router::default();
        let (wake, woken) = wake();
        let tester = router.join(1, wake);
        router.register(100, tester, Some(7));
        router.unregister(100);
        router.deliver(1, EventOwner::Element(100), "qp_fatal");
        assert!(!is_woken(&woken));
        (0..MAX_EVENTS + 9).for_each(|_| router.deliver(1, EventOwner::All, "port_err"));
        assert_eq!(router.take(tester).len(), MAX_EVENTS);
        router.register(100, tester, None);
        router.leave(tester);
        assert!(router.elements.is_empty() && router.take(tester).is_empty());
    }
}
