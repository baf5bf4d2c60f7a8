//! What the user of a connection commands.

use weft_core::wire::sdp::Mode;

use super::{Connection, Half, Policy, ReceiveEnd, ReceiveId, SendId};
use crate::time::Instant;

/// Sends, and receives, that a user may have posted at a time.
const MOST_POSTED: usize = 65536;

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// This side has shut down sending, or the connection is over (SDP-8.2.1-2).
    #[error("nothing more can be sent")]
    Closed,
    /// Too many are posted.
    #[error("{MOST_POSTED} are already posted")]
    QueueFull,
    /// A send or receive of no octets.
    #[error("no bytes")]
    Empty,
    /// The half-connection cannot get from its Mode to that one, or the other side is Master
    /// (section 12).
    #[error("this side cannot request that Mode")]
    NotMaster,
    /// The connection is being suspended (section 13).
    #[error("a suspension is in progress")]
    Suspending,
}

impl Connection {
    /// Posts a send of `len` octets, which stay as they are until [`super::Event::Sent`]. `urgent`:
    /// the last one is Out-Of-Band data.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn send(&mut self, send: SendId, len: u64, urgent: bool) -> Result<(), Refused> {
        if self.is_over() || self.close.is_requested() {
            return Err(Refused::Closed);
        }
        if len == 0 {
            return Err(Refused::Empty);
        }
        if self.source.sends() >= MOST_POSTED {
            return Err(Refused::QueueFull);
        }
        let last = self.source.post(send, len, urgent);
        if urgent {
            self.urgent.mark(last);
        }
        Ok(())
    }

    /// Posts a receive of up to `len` octets; [`super::Event::Received`] ends it. `wait_all`: not
    /// before all of them have arrived (MSG_WAITALL). A receive ends at an Out-Of-Band octet in any
    /// case.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn receive(&mut self, receive: ReceiveId, len: u64, wait_all: bool) -> Result<(), Refused> {
        if len == 0 {
            return Err(Refused::Empty);
        }
        if self.sink.receives() >= MOST_POSTED {
            return Err(Refused::QueueFull);
        }
        self.sink.post(receive, len, wait_all);
        self.advance();
        if self.is_over() {
            let end = if self.close.is_graceful() { ReceiveEnd::EndOfStream } else { ReceiveEnd::Aborted };
            self.sink.abort(end, &mut self.out);
        }
        Ok(())
    }

    /// Takes back all sends that are not out; each ends with [`super::Event::Sent`], which has how
    /// much of it was sent.
    pub fn cancel_sends(&mut self) {
        if !self.is_over() {
            self.source.cancel();
            self.advance();
        }
    }

    /// Takes back all receives; each ends with [`super::Event::Received`], perhaps with octets.
    pub fn cancel_receives(&mut self) {
        self.sink.cancel();
        self.advance();
    }

    /// The ULP sends no more (section 8.2.1): DisConn goes out after everything that was posted.
    pub fn shut_down(&mut self) {
        self.close.ask();
    }

    /// Abortive close (section 8.2.2).
    pub fn abort(&mut self, now: Instant) {
        self.begin_abort(now, None);
    }

    /// Requests a Mode. The sending half can request any Mode, step by step, but only the peer can
    /// end Buffered Mode. The receiving half can request Combined Mode while it is in Buffered
    /// Mode.
    ///
    /// # Errors
    /// [`Refused::NotMaster`], [`Refused::Closed`].
    pub fn set_mode(&mut self, half: Half, mode: Mode) -> Result<(), Refused> {
        if self.is_over() {
            return Err(Refused::Closed);
        }
        match half {
            Half::Out if self.source.mode == Mode::Buffered && mode != Mode::Buffered => Err(Refused::NotMaster),
            Half::Out => {
                self.source.wanted = Some(mode);
                Ok(())
            }
            Half::In if self.sink.mode == Mode::Buffered && mode == Mode::Combined => {
                self.sink.wants_combined = true;
                Ok(())
            }
            Half::In => Err(Refused::NotMaster),
        }
    }

    /// Asks the peer to give its Private Buffers this size in octets (section 10.6);
    /// [`super::Event::Resized`] has its answer. Nothing is requested if the peer would not change,
    /// or has refused a change in that direction before.
    pub fn resize(&mut self, octets: u32) {
        self.resize.want(octets.clamp(weft_core::wire::sdp::MIN_PRIVATE_BUFFER, 1 << 31));
    }

    /// The choices of mechanisms, to be changed.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.settings.policy
    }
}
