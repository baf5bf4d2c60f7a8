//! Commands of the user of a connection. Section numbers are those of the SDP draft.

use weft_core::wire::sdp::{FieldOrder, Mode};

use super::{Connection, Half, Output, Policy, ReceiveId, ReceiveOutcome, SendId};
use crate::reject::reject_if;
use crate::time::Instant;

/// Maximum number of sends that can be posted at a time. The same limit applies to receives.
const MAX_POSTED: usize = 65536;

/// Why a command is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// This side has shut down sending, or the connection is over (SDP-8.2.1-2).
    #[error("the connection is not open, or this side has shut down sending")]
    Closed,
    /// The maximum number of sends or receives is already posted.
    #[error("the maximum of {MAX_POSTED} sends or receives is already posted")]
    QueueFull,
    /// The send or receive has zero bytes.
    #[error("a send or receive must have at least one byte")]
    Empty,
    /// The half-connection cannot change from its current Mode to the requested Mode. Or the peer
    /// is the Mode Master, the only side that may change the Mode (section 12).
    #[error("this side cannot change this half-connection to the requested Mode")]
    NotMaster,
    /// The connection is being suspended (section 13).
    #[error("a suspension is in progress")]
    Suspending,
}

impl Connection {
    /// Posts a send of `len` bytes. The user must not change the bytes until [`super::Event::Sent`]
    /// reports the end of the send. If `urgent` is set, the last byte is Out-Of-Band data.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub fn send(&mut self, send: SendId, len: u64, urgent: bool) -> Result<(), CommandError> {
        reject_if(self.is_over() || self.close.requested, CommandError::Closed)?;
        reject_if(len == 0, CommandError::Empty)?;
        reject_if(self.source.sends() >= MAX_POSTED, CommandError::QueueFull)?;
        let last = self.source.post(send, len, urgent);
        if urgent {
            self.urgent.mark(last);
        }
        Ok(())
    }

    /// Posts a receive of up to `len` bytes. [`super::Event::Received`] reports its end. If
    /// `wait_all` is set, the receive waits until it is full (MSG_WAITALL). Even with `wait_all`, a
    /// receive ends early after an Out-Of-Band byte and at the end of the stream.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub fn receive(&mut self, receive: ReceiveId, len: u64, wait_all: bool) -> Result<(), CommandError> {
        reject_if(len == 0, CommandError::Empty)?;
        reject_if(self.sink.receives() >= MAX_POSTED, CommandError::QueueFull)?;
        self.sink.post(receive, len, wait_all);
        self.advance();
        if self.is_over() {
            let end = if self.close.is_graceful() { ReceiveOutcome::EndOfStream } else { ReceiveOutcome::Aborted };
            self.sink.abort(end, &mut self.out);
        }
        Ok(())
    }

    /// Cancels all sends that are not complete. [`super::Event::Sent`] reports for each send how
    /// many bytes were sent.
    pub fn cancel_sends(&mut self) {
        if !self.is_over() {
            self.source.cancel();
            self.advance();
        }
    }

    /// Cancels all receives. [`super::Event::Received`] reports the end of each receive, with the
    /// bytes that had already arrived.
    pub fn cancel_receives(&mut self) {
        self.sink.cancel();
        self.advance();
    }

    /// Closes the sending half-connection (section 8.2.1). DisConn is sent after all posted sends.
    pub fn shut_down(&mut self) {
        self.close.requested = true;
    }

    /// Closes the connection abortively (section 8.2.2).
    pub fn abort(&mut self, now: Instant) {
        self.begin_abort(now, None);
    }

    /// Requests a Mode for a half-connection. For the sending half-connection, the user can request
    /// any Mode, and the Mode changes step by step. The exception is Buffered Mode, which only the
    /// peer can change. For the receiving half-connection, the user can request only Combined Mode,
    /// and only while its Mode is Buffered.
    ///
    /// # Errors
    /// [`CommandError::NotMaster`], [`CommandError::Closed`].
    pub fn set_mode(&mut self, half: Half, mode: Mode) -> Result<(), CommandError> {
        reject_if(self.is_over(), CommandError::Closed)?;
        match half {
            Half::Out if self.source.mode == Mode::Buffered && mode != Mode::Buffered => Err(CommandError::NotMaster),
            Half::Out => {
                self.source.wanted = Some(mode);
                Ok(())
            }
            Half::In if self.sink.mode == Mode::Buffered && mode == Mode::Combined => {
                self.sink.wants_combined = true;
                Ok(())
            }
            Half::In => Err(CommandError::NotMaster),
        }
    }

    /// Requests the size `octets`, in bytes, for the peer's Private Buffers (section 10.6).
    /// [`super::Event::Resized`] reports the size that the peer selects. If the peer's Private
    /// Buffers already have this size, no request is sent. If the peer has refused an increase, no
    /// request for another increase is sent. The same applies to a decrease.
    pub fn resize(&mut self, octets: u32) {
        self.resize.want(octets.clamp(weft_core::wire::sdp::MIN_PRIVATE_BUFFER, 1 << 31));
    }

    /// Sends a message that `compose` returns, for a tester that violates the draft on purpose.
    /// `compose` gets the field order of the connection, and Bufs, MSeq and MSeqAck of the message.
    /// The machine counts the message, but does not parse it. So a ModeChange, for example, does
    /// not change a Mode of the machine. `solicited` selects a Send with Solicited Event.
    ///
    /// Returns `false`, and sends nothing, if this side has no send credit, if the connection is
    /// not open or is being aborted, or if answers to the peer wait for credit.
    pub fn send_composed(
        &mut self,
        solicited: bool,
        compose: impl FnOnce(FieldOrder, (u16, u32, u32)) -> Vec<u8>,
    ) -> bool {
        // An answer that waits for credit can end an advertisement. Until then, the peer could take
        // the message as this answer.
        let waits = !self.control.is_empty() || self.credits.available() == 0;
        if waits || !self.is_open() || self.close.is_aborting() {
            return false;
        }
        let head = compose(self.order, self.credits.stamp());
        self.out.push_back(Output::Send { op: None, head, payload: None, solicited, invalidate: None });
        true
    }

    /// Returns the policy, so that the user can change it.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.settings.policy
    }
}
