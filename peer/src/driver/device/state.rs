//! The state that the lock of a [`Device`](super::Device) guards: the RNIC, its streams, and the
//! tasks that wait for events.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::waiters::{Ticket, Waiters};
use super::{HANDLER, Stream};
use crate::driver::stream::Flushed;
use crate::time::Instant;
use crate::verbs::{CqHandle, LlpHandle, Notification, QpHandle, Rnic, TransmitResult};

/// After this number of sent bytes, the sender releases the lock. The last write can exceed this
/// number.
const BATCH: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct State {
    pub(super) rnic: Rnic,
    pub(super) streams: BTreeMap<LlpHandle, Driven>,
    /// Tasks that wait for completions of a CQ that [`Device::create_cq`](super::Device::create_cq)
    /// created.
    pub(super) cqs: BTreeMap<CqHandle, Waiters>,
    /// Tasks that wait for a state of a Queue Pair.
    qps: BTreeMap<QpHandle, Waiters>,
    /// Tasks that wait for completions of a CQ that [`Device::create_cq`](super::Device::create_cq)
    /// did not create.
    other_cqs: Waiters,
}

/// A stream and the task that drives it.
#[derive(Debug)]
pub(super) struct Driven {
    stream: Arc<Stream>,
    pub(super) qp: QpHandle,
    task: Option<Waker>,
}

/// The event that a task waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum WaitEvent {
    /// A completion of a CQ.
    Cq(CqHandle),
    /// A change of a Queue Pair's state.
    Qp(QpHandle),
}

impl Driven {
    /// Creates a stream that belongs to this Queue Pair.
    pub(super) fn new(stream: Arc<Stream>, qp: QpHandle) -> Self {
        Driven { stream, qp, task: None }
    }

    /// Wakes the stream's task, because only this task can do the work.
    pub(super) fn wake(&self) {
        if let Some(task) = &self.task {
            task.wake_by_ref();
        }
    }
}

/// The result of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendResult {
    /// Everything is sent.
    Idle,
    /// TCP accepts no more for now, the limit of bytes was reached, or the connection ended.
    Blocked,
    /// The connection has to be reset.
    Reset,
}

impl State {
    pub(super) fn new(rnic: Rnic) -> Self {
        State {
            rnic,
            streams: BTreeMap::new(),
            cqs: BTreeMap::new(),
            qps: BTreeMap::new(),
            other_cqs: Waiters::default(),
        }
    }

    /// Registers a task. [`notify`](Self::notify) wakes the task.
    pub(super) fn join(&mut self, event: WaitEvent, task: &Waker) -> Ticket {
        match event {
            WaitEvent::Cq(cq) => self.cqs.get_mut(&cq).unwrap_or(&mut self.other_cqs).join(task),
            WaitEvent::Qp(qp) => self.qps.entry(qp).or_default().join(task),
        }
    }

    /// Ends the registration of a task. It does not matter whether the task was woken.
    pub(super) fn leave(&mut self, event: WaitEvent, ticket: Ticket) {
        match event {
            WaitEvent::Cq(cq) => self.cqs.get_mut(&cq).unwrap_or(&mut self.other_cqs).leave(ticket),
            WaitEvent::Qp(qp) => {
                if let Some(waiters) = self.qps.get_mut(&qp) {
                    waiters.leave(ticket);
                    if waiters.is_empty() {
                        self.qps.remove(&qp);
                    }
                }
            }
        }
    }

    /// Returns the Queue Pair that a stream belongs to.
    pub(super) fn qp_of(&self, llp: LlpHandle) -> Option<QpHandle> {
        self.streams.get(&llp).map(|driven| driven.qp)
    }

    /// Sets the task that is woken when another task gives the stream work.
    pub(super) fn set_task(&mut self, llp: LlpHandle, task: &Waker) {
        if let Some(driven) = self.streams.get_mut(&llp)
            && !driven.task.as_ref().is_some_and(|known| known.will_wake(task))
        {
            driven.task = Some(task.clone());
        }
    }

    /// Wakes the task of a Queue Pair's stream.
    pub(super) fn wake(&self, qp: QpHandle) {
        if let Some(driven) = self.rnic.stream_of(qp).and_then(|llp| self.streams.get(&llp)) {
            driven.wake();
        }
    }

    /// Sends pending bytes, and the mangler's output that is due.
    pub(super) fn transmit(&mut self, now: Instant, llp: LlpHandle) -> SendResult {
        let result = self.send_pending(now, llp);
        let Some(Driven { stream, .. }) = self.streams.get(&llp) else { return result };
        match stream.flush() {
            // The mangler is full. The mangler sends more bytes when time passes, so the task must
            // not wait for TCP.
            Ok(Flushed::Idle) if result == SendResult::Blocked && stream.flush_timeout().is_some() => SendResult::Idle,
            Ok(Flushed::Idle) => result,
            Ok(Flushed::Blocked) => SendResult::Blocked,
            // The mangler has possibly added this reset. The RNIC is informed when the stream is
            // detached.
            Ok(Flushed::Reset) => SendResult::Reset,
            Err(_) => {
                self.rnic.handle_reset(now, llp);
                SendResult::Blocked
            }
        }
    }

    /// Returns whether a mangler still has something to send.
    pub(super) fn has_delayed_output(&self, llp: LlpHandle) -> bool {
        self.streams.get(&llp).is_some_and(|driven| driven.stream.flush_timeout().is_some())
    }

    /// Sends as long as TCP accepts bytes. Stops after [`BATCH`] bytes, to let other tasks get the
    /// lock.
    fn send_pending(&mut self, now: Instant, llp: LlpHandle) -> SendResult {
        let Some(Driven { stream, .. }) = self.streams.get(&llp) else { return SendResult::Idle };
        let mut sent_octets = 0;
        while sent_octets < BATCH {
            let mut failed = None;
            let sent = self.rnic.poll_transmit(now, llp, |slices| {
                stream.write(slices).unwrap_or_else(|error| {
                    failed = Some(error.kind());
                    0
                })
            });
            match (sent, failed) {
                (TransmitResult::Nothing, _) => return SendResult::Idle,
                (TransmitResult::Reset, _) => {
                    stream.reset();
                    return SendResult::Reset;
                }
                (TransmitResult::Fin, _) => {
                    if stream.finish().is_err() {
                        self.rnic.handle_reset(now, llp);
                    }
                }
                (TransmitResult::Octets(octets), None) => sent_octets += octets,
                (TransmitResult::Octets(_), Some(io::ErrorKind::WouldBlock)) => return SendResult::Blocked,
                (TransmitResult::Octets(_), Some(_)) => {
                    self.rnic.handle_reset(now, llp);
                    return SendResult::Blocked;
                }
            }
        }
        SendResult::Blocked
    }

    /// Wakes the tasks that wait for completions, and the tasks that wait for this Queue Pair.
    /// Tasks that wait for other Queue Pairs are woken only after an error of a CQ or of the RNIC.
    /// Without this rule, each call would wake the tasks of all connections.
    pub(super) fn notify(&mut self, qp: Option<QpHandle>) {
        let mut all = false;
        while let Some(notification) = self.rnic.poll_notification() {
            match notification {
                Notification::Completion { handler: HANDLER, cq } => {
                    if let Some(waiters) = self.cqs.get_mut(&cq) {
                        waiters.wake();
                    }
                }
                // An error of a CQ or of the RNIC also affects its Queue Pairs.
                _ => all = true,
            }
        }
        self.other_cqs.wake();
        if all {
            self.qps.values_mut().for_each(Waiters::wake);
        } else if let Some(waiters) = qp.and_then(|qp| self.qps.get_mut(&qp)) {
            waiters.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::verbs::{Node, QpInit, RnicSettings};

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_befalls_one_queue_pair_wakes_nobody_who_waits_for_another() {
        let (mut rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
        let pd = rnic.memory_mut().allocate_pd().unwrap();
        let (cq, _) = rnic.create_cq(16, None).unwrap();
        let [one, other] = [(); 2].map(|()| rnic.create_qp(QpInit::new(pd, cq, cq), None).unwrap().0);
        let mut state = State::new(rnic);
        let woken: [Arc<Woken>; 3] = Default::default();
        let waker = |index: usize| Waker::from(Arc::clone(&woken[index]));
        let counts = || woken.each_ref().map(|woken| woken.0.load(Ordering::Relaxed));
        state.join(WaitEvent::Qp(one), &waker(0));
        let ticket = state.join(WaitEvent::Qp(other), &waker(1));
        state.join(WaitEvent::Cq(cq), &waker(2));
        // This CQ does not come from `Device::create_cq`, so every event wakes the task that waits
        // for the CQ.
        state.notify(Some(one));
        assert_eq!(counts(), [1, 0, 1]);
        state.notify(None);
        assert_eq!(counts(), [1, 0, 1]);
        state.notify(Some(other));
        assert_eq!(counts(), [1, 1, 1]);
        // A Queue Pair has an entry only while some task waits for the Queue Pair.
        state.leave(WaitEvent::Qp(other), ticket);
        assert!(!state.qps.contains_key(&other));
    }
}
