//! What the lock of a [`Device`](super::Device) guards: the RNIC, its streams, and who waits for what.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::waiters::Waiters;
use super::{HANDLER, Stream};
use crate::driver::stream::Flushed;
use crate::time::Instant;
use crate::verbs::{CqHandle, LlpHandle, Notification, QpHandle, Rnic, Sent};

/// Octets that one turn with the lock sends, and at most one batch more.
const TURN: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct State {
    pub(super) rnic: Rnic,
    pub(super) streams: BTreeMap<LlpHandle, Driven>,
    /// Who waits for completions of a CQ.
    pub(super) cqs: BTreeMap<CqHandle, Waiters>,
    /// Who waits for anything else: completions may be there, states may have changed.
    happened: Waiters,
    /// Notifications that are not the device's own.
    pub(super) notifications: Vec<Notification>,
}

/// A stream and the task that drives it.
#[derive(Debug)]
pub(super) struct Driven {
    stream: Arc<Stream>,
    task: Option<Waker>,
}

impl Driven {
    pub(super) fn new(stream: Arc<Stream>) -> Self {
        Driven { stream, task: None }
    }

    /// Wakes its task: there is something to do that only the task can do.
    pub(super) fn wake(&self) {
        if let Some(task) = &self.task {
            task.wake_by_ref();
        }
    }
}

/// What sending came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// All is sent.
    Idle,
    /// TCP takes no more for now, or others have their turn, or the connection ended.
    Blocked,
    /// The connection is to be reset.
    Reset,
}

impl State {
    pub(super) fn new(rnic: Rnic) -> Self {
        State {
            rnic,
            streams: BTreeMap::new(),
            cqs: BTreeMap::new(),
            happened: Waiters::default(),
            notifications: Vec::new(),
        }
    }

    /// Who waits for completions of a CQ, or of none that is the device's own.
    pub(super) fn waiters(&mut self, cq: Option<CqHandle>) -> &mut Waiters {
        match cq.and_then(|cq| self.cqs.get_mut(&cq)) {
            Some(own) => own,
            None => &mut self.happened,
        }
    }

    /// From now on whoever gives the stream something to do wakes this task.
    pub(super) fn attend(&mut self, llp: LlpHandle, task: &Waker) {
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

    /// Sends what there is, and what a mangler has made of it by now.
    pub(super) fn transmit(&mut self, now: Instant, llp: LlpHandle) -> After {
        let after = self.offer(now, llp);
        let Some(Driven { stream, .. }) = self.streams.get(&llp) else { return after };
        match stream.flush() {
            // It is full, and goes on by time, not when TCP takes more.
            Ok(Flushed::Idle) if after == After::Blocked && stream.flush_timeout().is_some() => After::Idle,
            Ok(Flushed::Idle) => after,
            Ok(Flushed::Blocked) => After::Blocked,
            // The RNIC may know nothing of it, and hears of it when the stream is left.
            Ok(Flushed::Reset) => After::Reset,
            Err(_) => {
                self.rnic.handle_reset(now, llp);
                After::Blocked
            }
        }
    }

    /// A mangler sends something later.
    pub(super) fn is_late(&self, llp: LlpHandle) -> bool {
        self.streams.get(&llp).is_some_and(|driven| driven.stream.flush_timeout().is_some())
    }

    /// Sends as long as TCP takes some, but not so long that others wait for the lock.
    fn offer(&mut self, now: Instant, llp: LlpHandle) -> After {
        let Some(Driven { stream, .. }) = self.streams.get(&llp) else { return After::Idle };
        let mut turn = 0;
        while turn < TURN {
            let mut failed = None;
            let sent = self.rnic.poll_transmit(now, llp, |slices| {
                stream.write(slices).unwrap_or_else(|error| {
                    failed = Some(error.kind());
                    0
                })
            });
            match (sent, failed) {
                (Sent::Nothing, _) => return After::Idle,
                (Sent::Reset, _) => {
                    stream.reset();
                    return After::Reset;
                }
                (Sent::Fin, _) => {
                    if stream.finish().is_err() {
                        self.rnic.handle_reset(now, llp);
                    }
                }
                (Sent::Octets(octets), None) => turn += octets,
                (Sent::Octets(_), Some(io::ErrorKind::WouldBlock)) => return After::Blocked,
                (Sent::Octets(_), Some(_)) => {
                    self.rnic.handle_reset(now, llp);
                    return After::Blocked;
                }
            }
        }
        After::Blocked
    }

    /// Wakes who waits for what has happened.
    pub(super) fn notify(&mut self) {
        while let Some(notification) = self.rnic.poll_notification() {
            match notification {
                Notification::Completion { handler: HANDLER, cq } => {
                    if let Some(waiters) = self.cqs.get_mut(&cq) {
                        waiters.wake();
                    }
                }
                other => self.notifications.push(other),
            }
        }
        self.happened.wake();
    }
}
