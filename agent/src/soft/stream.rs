//! The endpoint of a stream, for its driver.

use weft_peer::service::Served;
use weft_peer::verbs::Sent;
use weft_peer::{Instant, Transmit};

use super::end::State;
use super::{Inner, Soft};
use crate::protocol::{Event, Object, Octets};

/// errno values of Linux.
const ECONNRESET: i32 = 104;
const ETIMEDOUT: i32 = 110;

/// The endpoint of a stream, for its driver. Dropping it destroys the connection.
#[derive(Debug)]
pub(super) struct SoftEnd {
    pub(super) soft: Soft,
    pub(super) object: Object,
}

impl SoftEnd {
    pub(super) fn set_emss(&self, emss: u32) {
        self.soft.lock().set_emss(self.object, emss);
    }

    /// Returns whether the tester knows the connection, and so may still send requests about it.
    pub(super) fn is_known(&self) -> bool {
        self.soft.lock().things.contains_key(&self.object)
    }

    /// Returns whether the connection no longer waits for the peer's Reply.
    pub(super) fn is_given_up(&self) -> bool {
        let inner = self.soft.lock();
        !inner.ends.get(&self.object).is_some_and(|end| matches!(end.state, State::WaitReply(_)))
    }

    fn with<R>(&self, now: Instant, act: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.soft.lock();
        inner.now = now;
        let result = act(&mut inner);
        inner.collect(now);
        result
    }
}

impl Served for SoftEnd {
    fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        self.with(now, |inner| inner.handle_octets(now, self.object, octets));
    }

    fn handle_fin(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(end) = inner.ends.get_mut(&self.object) else { return };
            match &end.state {
                State::Operating(llp) => {
                    end.ended = true;
                    inner.rnic.handle_fin(now, *llp);
                }
                State::WaitReply(_) => {
                    let (status, private_data) = (ECONNRESET, Octets::default());
                    let event = Event::Rejected { connection: self.object, status, private_data };
                    end.send(Transmit::Fin);
                    end.over();
                    inner.events.push_back((now, event));
                }
                State::Resolved | State::WaitRequest(_) | State::Undecided(_) => {
                    end.send(Transmit::Fin);
                    end.over();
                }
                State::Refused => end.over(),
                State::Over => {}
            }
        });
    }

    fn handle_reset(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(end) = inner.ends.get_mut(&self.object) else { return };
            end.outgoing.clear();
            match end.state {
                State::Operating(llp) => {
                    end.ended = true;
                    inner.rnic.handle_reset(now, llp);
                }
                State::WaitReply(_) => {
                    let (status, private_data) = (ECONNRESET, Octets::default());
                    let event = Event::Rejected { connection: self.object, status, private_data };
                    end.over();
                    inner.events.push_back((now, event));
                }
                _ => end.over(),
            }
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.with(now, |inner| {
            let Some(end) = inner.ends.get_mut(&self.object) else { return };
            end.touched = false;
            if let State::Operating(llp) = end.state {
                return inner.rnic.handle_timeout(now, llp);
            }
            if end.deadline.is_none_or(|deadline| now < deadline) {
                return;
            }
            match &end.state {
                State::WaitReply(_) => inner.failed(now, self.object, "unreachable", ETIMEDOUT),
                State::WaitRequest(_) => inner.refuse(now, self.object),
                _ => {
                    end.send(Transmit::Reset);
                    end.over();
                }
            }
        });
    }

    fn serve(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.with(now, |inner| {
            let end = inner.ends.get_mut(&self.object)?;
            if let Some(item) = end.outgoing.pop_front() {
                return Some(item);
            }
            let State::Operating(llp) = end.state else { return None };
            let mut octets = Vec::new();
            let sent = inner.rnic.poll_transmit(now, llp, |slices| {
                slices.iter().for_each(|slice| octets.extend_from_slice(slice));
                octets.len()
            });
            match sent {
                Sent::Nothing => None,
                Sent::Octets(_) => Some(Transmit::Octets(octets.into())),
                Sent::Fin => Some(Transmit::Fin),
                Sent::Reset => Some(Transmit::Reset),
            }
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let inner = self.soft.lock();
        let end = inner.ends.get(&self.object)?;
        match end.state {
            _ if end.touched => Some(Instant::ORIGIN),
            State::Operating(llp) => inner.rnic.poll_timeout(llp),
            _ => end.deadline,
        }
    }

    fn is_ready(&self) -> bool {
        let inner = self.soft.lock();
        match inner.ends.get(&self.object).map(|end| &end.state) {
            Some(State::Operating(llp)) => inner.rnic.wants_octets(*llp),
            _ => true,
        }
    }

    fn is_over(&self) -> bool {
        let inner = self.soft.lock();
        match inner.ends.get(&self.object) {
            None => true,
            Some(end) => match end.state {
                State::Operating(llp) => end.outgoing.is_empty() && inner.rnic.is_stream_over(llp),
                State::Over => end.outgoing.is_empty(),
                _ => false,
            },
        }
    }
}

impl Drop for SoftEnd {
    fn drop(&mut self) {
        let mut inner = self.soft.lock();
        if let Some(end) = inner.ends.remove(&self.object) {
            if let Some(pair) = end.pair {
                inner.give_back(pair);
            }
            if let State::Operating(llp) = end.state {
                let now = inner.now;
                inner.rnic.detach_stream(now, llp);
            }
        }
        inner.things.remove(&self.object);
    }
}
