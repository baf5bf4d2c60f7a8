//! Passes asynchronous events of devices to the control connections that they concern. librdmacm
//! opens each device once per process, so all control connections share the descriptor of its
//! events. Each reader of the descriptor may get events of other control connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::{Event, Object};

/// Maximum number of events that wait for one control connection. Later events are dropped.
const MOST: usize = 1024;

/// A control connection that is registered with the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tester(u64);

/// The control connections that an event concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The one that created the queue at this address.
    Element(usize),
    /// All control connections on the device.
    All,
}

/// All control connections of this process, with their queues and waiting events.
#[derive(Debug, Default)]
pub(super) struct Router {
    last: u64,
    testers: BTreeMap<Tester, Mailbox>,
    /// Queues by address, with their control connection and, except for shared receive queues,
    /// their connection.
    elements: BTreeMap<usize, (Tester, Option<Object>)>,
}

#[derive(Debug)]
struct Mailbox {
    device: usize,
    events: VecDeque<Event>,
    wake: rustix::fd::OwnedFd,
}

/// The router of this process.
static ROUTER: Mutex<Router> = Mutex::new(Router { last: 0, testers: BTreeMap::new(), elements: BTreeMap::new() });

/// Locks the router. While it is locked, the thread must not wait for a call of the device:
/// destroying a queue waits until its events are acknowledged.
pub(super) fn router() -> MutexGuard<'static, Router> {
    ROUTER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Router {
    /// Registers a control connection on a device. `wake` becomes readable when an event waits for
    /// it.
    pub(super) fn join(&mut self, device: usize, wake: rustix::fd::OwnedFd) -> Tester {
        self.last += 1;
        let tester = Tester(self.last);
        self.testers.insert(tester, Mailbox { device, events: VecDeque::new(), wake });
        tester
    }

    pub(super) fn leave(&mut self, tester: Tester) {
        self.testers.remove(&tester);
        self.elements.retain(|_, (whose, _)| *whose != tester);
    }

    /// Registers a queue, until [`gone`](Self::gone) removes it.
    pub(super) fn made(&mut self, element: usize, tester: Tester, connection: Option<Object>) {
        self.elements.insert(element, (tester, connection));
    }

    pub(super) fn gone(&mut self, element: usize) {
        self.elements.remove(&element);
    }

    /// Passes on an event that was read from the descriptor of `device`.
    pub(super) fn deliver(&mut self, device: usize, whose: Whose, kind: &str) {
        let event = |connection| Event::Asynchronous { kind: kind.to_owned(), connection };
        match whose {
            // An event of a queue that has been destroyed meanwhile is dropped.
            Whose::Element(element) => {
                let Some((tester, connection)) = self.elements.get(&element) else { return };
                if let Some(mailbox) = self.testers.get_mut(tester) {
                    mailbox.put(event(*connection));
                }
            }
            Whose::All => {
                self.testers.values_mut().filter(|mailbox| mailbox.device == device).for_each(|it| it.put(event(None)));
            }
        }
    }

    /// Removes and returns the events that wait for a control connection.
    pub(super) fn take(&mut self, tester: Tester) -> Vec<Event> {
        let Some(mailbox) = self.testers.get_mut(&tester) else { return Vec::new() };
        if mailbox.events.is_empty() {
            return Vec::new();
        }
        // After this read, `wake` is no longer readable.
        let _ = rustix::io::read(&mailbox.wake, &mut [0; 8]);
        mailbox.events.drain(..).collect()
    }
}

impl Mailbox {
    fn put(&mut self, event: Event) {
        if self.events.len() < MOST {
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
        router.made(100, first, Some(7));
        router.made(200, second, None);
        router.deliver(1, Whose::Element(100), "qp_fatal");
        assert_eq!([is_woken(&mine), is_woken(&other), is_woken(&far)], [true, false, false]);
        assert_eq!(router.take(first), [event("qp_fatal", Some(7))]);
        assert!(!is_woken(&mine) && router.take(second).is_empty());
        router.deliver(1, Whose::Element(200), "srq_limit_reached");
        router.deliver(1, Whose::All, "port_err");
        assert_eq!(router.take(first), [event("port_err", None)]);
        assert_eq!(router.take(second), [event("srq_limit_reached", None), event("port_err", None)]);
        assert!(router.take(third).is_empty());
    }

    #[test]
    fn a_released_object_gets_no_more_events_and_an_idle_reader_keeps_few() {
        let mut router = Router::default();
        let (wake, woken) = wake();
        let tester = router.join(1, wake);
        router.made(100, tester, Some(7));
        router.gone(100);
        router.deliver(1, Whose::Element(100), "qp_fatal");
        assert!(!is_woken(&woken));
        (0..MOST + 9).for_each(|_| router.deliver(1, Whose::All, "port_err"));
        assert_eq!(router.take(tester).len(), MOST);
        router.made(100, tester, None);
        router.leave(tester);
        assert!(router.elements.is_empty() && router.take(tester).is_empty());
    }
}
