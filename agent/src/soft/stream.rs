//! The endpoint of a stream, for the driver of the stream.

use weft_peer::service::{DrivenConnection, poll_transmit};
use weft_peer::{Instant, Transmit};

use super::connection::State;
use super::{Inner, SoftDevice};
use crate::protocol::{Event, Object, Octets};

/// errno values of Linux.
const ECONNRESET: i32 = 104;
const ETIMEDOUT: i32 = 110;

/// The endpoint of a stream, for the driver of the stream. Dropping the endpoint destroys the
/// connection.
#[derive(Debug)]
pub(super) struct SoftConnection {
    pub(super) soft: SoftDevice,
    pub(super) object: Object,
}

impl SoftConnection {
    pub(super) fn set_emss(&self, emss: u32) {
        self.soft.lock().set_emss(self.object, emss);
    }

    /// Returns whether the tester knows the connection. If so, the tester can still send requests
    /// about the connection.
    pub(super) fn is_known(&self) -> bool {
        self.soft.lock().objects.contains_key(&self.object)
    }

    /// Returns whether the connection no longer waits for the peer's Reply.
    pub(super) fn has_given_up(&self) -> bool {
        let inner = self.soft.lock();
        !inner.connections.get(&self.object).is_some_and(|entry| matches!(entry.state, State::WaitReply(_)))
    }

    fn with<R>(&self, now: Instant, act: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.soft.lock();
        inner.now = now;
        let result = act(&mut inner);
        inner.collect(now);
        result
    }
}

impl DrivenConnection for SoftConnection {
    fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        self.with(now, |inner| inner.handle_octets(now, self.object, octets));
    }

    fn handle_fin(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(entry) = inner.connections.get_mut(&self.object) else { return };
            match &entry.state {
                State::Operating(llp) => {
                    entry.ended = true;
                    inner.rnic.handle_fin(now, *llp);
                }
                State::WaitReply(_) => {
                    let (status, private_data) = (ECONNRESET, Octets::default());
                    let event = Event::Rejected { connection: self.object, status, private_data };
                    entry.send(Transmit::Fin);
                    entry.set_closed();
                    inner.events.push_back((now, event));
                }
                State::Resolved | State::WaitRequest(_) | State::Undecided(_) => {
                    entry.send(Transmit::Fin);
                    entry.set_closed();
                }
                State::Refused => entry.set_closed(),
                State::Closed => {}
            }
        });
    }

    fn handle_reset(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(entry) = inner.connections.get_mut(&self.object) else { return };
            entry.outgoing.clear();
            match entry.state {
                State::Operating(llp) => {
                    entry.ended = true;
                    inner.rnic.handle_reset(now, llp);
                }
                State::WaitReply(_) => {
                    let (status, private_data) = (ECONNRESET, Octets::default());
                    let event = Event::Rejected { connection: self.object, status, private_data };
                    entry.set_closed();
                    inner.events.push_back((now, event));
                }
                _ => entry.set_closed(),
            }
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(entry) = inner.connections.get_mut(&self.object) else { return };
            entry.changed = false;
            if let State::Operating(llp) = entry.state {
                return inner.rnic.handle_timeout(now, llp);
            }
            if entry.deadline.is_none_or(|deadline| now < deadline) {
                return;
            }
            match &entry.state {
                State::WaitReply(_) => inner.failed(now, self.object, "unreachable", ETIMEDOUT),
                State::WaitRequest(_) => inner.refuse(now, self.object),
                _ => {
                    entry.send(Transmit::Reset);
                    entry.set_closed();
                }
            }
        });
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.with(now, |inner| {
            let entry = inner.connections.get_mut(&self.object)?;
            if let Some(item) = entry.outgoing.pop_front() {
                return Some(item);
            }
            let State::Operating(llp) = entry.state else { return None };
            poll_transmit(&mut inner.rnic, now, llp, usize::MAX)
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let inner = self.soft.lock();
        let entry = inner.connections.get(&self.object)?;
        match entry.state {
            _ if entry.changed => Some(Instant::ORIGIN),
            State::Operating(llp) => inner.rnic.poll_timeout(llp),
            _ => entry.deadline,
        }
    }

    fn is_ready(&self) -> bool {
        let inner = self.soft.lock();
        match inner.connections.get(&self.object).map(|entry| &entry.state) {
            Some(State::Operating(llp)) => inner.rnic.wants_octets(*llp),
            _ => true,
        }
    }

    fn is_over(&self) -> bool {
        let inner = self.soft.lock();
        let Some(entry) = inner.connections.get(&self.object) else { return true };
        match entry.state {
            State::Operating(llp) => entry.outgoing.is_empty() && inner.rnic.is_stream_over(llp),
            State::Closed => entry.outgoing.is_empty(),
            _ => false,
        }
    }
}

impl Drop for SoftConnection {
    fn drop(&mut self) {
        let mut inner = self.soft.lock();
        if let Some(entry) = inner.connections.remove(&self.object) {
            if let Some(pair) = entry.pair {
                inner.release_pair(pair);
            }
            if let State::Operating(llp) = entry.state {
                let now = inner.now;
                inner.rnic.detach_stream(now, llp);
            }
        }
        inner.objects.remove(&self.object);
    }
}
