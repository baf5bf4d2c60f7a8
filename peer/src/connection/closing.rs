//! The end of a connection: the commands that close it, the Terminate, FIN and reset, and the event
//! that reports the end.
//!
//! The other files decide why a connection ends. The first cause is kept.

use super::{CloseCause, Closed, ClosedBy, Connection, Event, Fin, State, Transmit};
use crate::hostile;
use crate::rdmap::{Outbound, StreamError};
use crate::time::Instant;

/// Commands that close the connection.
impl Connection {
    /// Closes gracefully: sends everything that is posted, then FIN (DDP-6.2.1-1). Data that
    /// arrives before the peer's FIN is still delivered. If this endpoint is not yet allowed to
    /// send FPDUs, it sends only FIN. Does nothing if the connection is already closing.
    pub fn close(&mut self, now: Instant) {
        if self.fin != Fin::Open || matches!(self.state, State::Closed) {
            return;
        }
        if let State::Operating(stream) = &mut self.state {
            if !stream.may_send || self.conduct.drops_posted {
                stream.outbound.drop_posted();
            }
            if self.conduct.drops_posted {
                stream.outbound.drop_begun();
            }
            self.ending.get_or_insert(Closed { by: ClosedBy::User, why: CloseCause::Requested });
            self.want_fin(now);
        } else {
            self.end(now, ClosedBy::User, CloseCause::Requested);
        }
    }

    /// Resets the connection.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.ending.get_or_insert(Closed { by: ClosedBy::User, why: CloseCause::Requested });
            self.abort_now();
        }
    }
}

/// Steps of closing.
impl Connection {
    pub(super) fn half_close(&mut self) {
        self.ending.get_or_insert(Closed { by: ClosedBy::Peer, why: CloseCause::Fin });
        self.events.push_back(Event::HalfClosed);
    }

    /// If FIN was not sent, sends a Terminate as the last message. Then closes this direction.
    pub(super) fn terminate(&mut self, now: Instant, by: ClosedBy, mut outbound: Outbound, error: StreamError) {
        if self.fin != Fin::Sent && !self.conduct.skips_terminate {
            let mut message = error.terminate();
            hostile::hook::terminate(&self.settings.deviations, &mut message);
            outbound.terminate(message);
            self.events.push_back(Event::TerminateSent(error));
        }
        if self.conduct.keeps_open {
            self.ending.get_or_insert(Closed { by, why: CloseCause::Fault(error) });
        } else {
            self.end(now, by, CloseCause::Fault(error));
        }
        self.state = State::Draining(Box::new(outbound));
    }

    /// Ignores further input and closes this direction. If the end of the connection has no cause
    /// yet, `by` and `why` become the cause.
    pub(super) fn end(&mut self, now: Instant, by: ClosedBy, why: CloseCause) {
        self.ending.get_or_insert(Closed { by, why });
        self.state = State::Silent;
        self.want_fin(now);
    }

    fn want_fin(&mut self, now: Instant) {
        if self.fin == Fin::Open {
            self.fin = Fin::Wanted;
        }
        self.deadline = Some(now + self.settings.close_timeout);
    }

    pub(super) fn abort_now(&mut self) {
        self.outgoing.clear();
        self.outgoing.push_back(Transmit::Reset);
        self.finish();
    }

    pub(super) fn finish_when_closed(&mut self) {
        if self.peer_fin && self.fin == Fin::Sent {
            self.finish();
        }
    }

    pub(super) fn finish(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.state = State::Closed;
            self.deadline = None;
            let closed = self.ending.unwrap_or(Closed { by: ClosedBy::Peer, why: CloseCause::Fin });
            self.events.push_back(Event::Closed(closed));
        }
    }
}
