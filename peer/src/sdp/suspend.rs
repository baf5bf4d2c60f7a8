//! Socket duplication and managed failover (section 13 of the SDP draft). The connection is
//! suspended and TCP ends. Then the same socket continues over another TCP connection, and no byte
//! is lost or repeated.
//!
//! ```text
//! Local Peer (suspends):         suspend(port) -> finish -> SuspComm -> receives SuspCommAck
//!                                -> TCP ends -> accepts at the port -> Hello, HelloAck -> open
//! Remote Peer (is suspended):    receives SuspComm -> finish -> SuspCommAck -> its completion
//!                                -> TCP ends -> connects to the port -> Hello, HelloAck -> open
//! ```
//!
//! "Finish" means that the side waits until the Reads and Writes in progress end, and reports them
//! to the other side. Advertisements whose transfer has not begun become void when TCP ends. Their
//! bytes belong to the Data Source again. After SuspComm or SuspCommAck a side sends nothing more
//! on this TCP connection.
//!
//! The posted sends and receives remain, and so do the bytes in Private Buffers. MSeq, credit,
//! Modes and the counters of section 9.5.1 start anew.
//!
//! If both sides send SuspComm at the same time, the Accepting Peer ignores the SuspComm that it
//! receives. The Connecting Peer answers, and repeats its own SuspComm after the reconnection
//! (section 13.1.2). To move the socket to another address space or host, move this state machine
//! to the new place.

use weft_core::wire::sdp::{Body, Mid, Mode, SuspComm};

use super::command::CommandError;
use super::connection::Connection;
use super::control::{Carrier, Control, queue_answers};
use super::credit_request::CreditRequest;
use super::credits::Credits;
use super::inbound::Inbound;
use super::next::Producer;
use super::op::Op;
use super::phase::Phase;
use super::suspension::Suspension;
use super::{Event, Half, Output, Role, Settings, Violation};
use crate::reject::reject_if;
use crate::time::Instant;

/// Commands.
impl Connection {
    /// Suspends the connection: the peer has to reconnect to `port` at this side's address.
    /// [`Event::Suspended`] reports that the caller must now replace the TCP connection. Then call
    /// [`reconnected`](Self::reconnected) with the new connection.
    ///
    /// # Errors
    /// [`CommandError::Closed`]: the connection is not open yet, or is shut down.
    /// [`CommandError::Suspending`]: this side has already requested a suspension. If only the peer
    /// has requested a suspension, this function succeeds, and the suspension of this side begins
    /// after the peer's suspension.
    pub fn suspend(&mut self, port: u16) -> Result<(), CommandError> {
        let begun = self.is_open() || self.is_suspended() || self.suspension.restarted;
        if !begun || self.is_over() || self.close.requested || self.close.is_aborting() {
            return Err(CommandError::Closed);
        }
        reject_if(self.suspension.wanted.is_some(), CommandError::Suspending)?;
        self.suspension.wanted = Some(port);
        self.sink.halted = true;
        Ok(())
    }

    /// Returns whether the connection is suspended: SuspCommAck was exchanged, and no new TCP
    /// connection exists yet.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        matches!(self.phase, Phase::Suspended)
    }

    /// Continues on a new, established TCP connection. If [`Event::Suspended`] has a port, this
    /// side has connected to that port. Otherwise this side has accepted the connection.
    pub fn reconnected(&mut self, now: Instant) {
        let Some(role) = self.suspension.next.take().filter(|_| self.is_suspended()) else { return };
        let wanted = self.suspension.wanted;
        self.suspension = Suspension { restarted: true, wanted, ..Suspension::default() };
        self.sink.halted = wanted.is_some();
        self.role = role;
        (self.credit_request, self.echo, self.echoed) = (CreditRequest::new(role), CreditRequest::new(role), false);
        // The size of the Private Buffers stays as it was (SDP-13.1.1-25).
        let size = self.pool.size;
        let same = Settings { recv_size: size, max_recv_size: size, order: self.order, ..self.settings };
        self.start_up(same);
        self.startup_deadline = Some(now + self.settings.startup_timeout);
    }
}

/// Messages of the peer.
impl Inbound<'_> {
    /// Processes the peer's SuspComm.
    pub(super) fn susp_comm(&mut self, header: SuspComm) -> Result<(), Violation> {
        let connection = &mut *self.connection;
        reject_if(connection.suspension.answers.is_some(), Violation::OutOfPlace(Mid::SUSP_COMM))?;
        if connection.suspension.sent {
            if connection.role == Role::Accepting {
                return Ok(());
            }
            // This side's own SuspComm is void, and is repeated after the reconnection.
            connection.suspension.sent = false;
        }
        connection.suspension.answers = Some(header.port);
        connection.sink.halted = true;
        connection.close.deadline = Some(self.now + connection.settings.close_timeout);
        Ok(())
    }

    /// Processes the peer's SuspCommAck. The peer has received all messages of this side.
    pub(super) fn susp_comm_ack(&mut self) -> Result<(), Violation> {
        if !self.connection.suspension.sent || self.connection.suspension.answers.is_some() {
            return Err(Violation::OutOfPlace(Mid::SUSP_COMM_ACK));
        }
        self.connection.suspension.wanted = None;
        self.connection.suspend_tcp(self.now, Role::Accepting, None);
        Ok(())
    }
}

/// Messages of this side.
impl Producer<'_> {
    /// Sends SuspComm or SuspCommAck as soon as the transfers in progress have ended. Returns
    /// whether a message was sent.
    pub(super) fn suspend_now(&mut self) -> bool {
        let connection = &mut *self.connection;
        let answering = connection.suspension.is_answering();
        if !connection.suspension.is_halting() || connection.sink.is_reading() || !connection.source.writing.is_empty()
        {
            return false;
        }
        // While the peer can give credit, SuspComm waits until this side has sent the data that the
        // peer requested, and until revocations are complete.
        if !answering
            && (connection.source.has_requested_data()
                || connection.source.is_revoking()
                || connection.sink.is_revoking())
        {
            return false;
        }
        let unreported = connection.sink.report_rest();
        if !unreported.is_empty() {
            queue_answers(&mut connection.control, unreported);
            return self.answer_now();
        }
        if answering && connection.credits.available() == 1 && !connection.credits.allow(false) {
            // The peer gives no more credit. If this side posts one more buffer, SuspCommAck is
            // allowed to use the last credit (SDP-10.5-7).
            connection.post_extra(1);
        }
        if !connection.credits.allow(false) {
            return false;
        }
        if answering {
            let op = Some(connection.ops.assign(Op::SuspCommAck));
            connection.suspension.answered = true;
            self.emit(Body::SuspCommAck, Carrier { op, ..Carrier::default() });
            return true;
        }
        // After this message, this side gives no credit, but the peer must report all open
        // transfers. So this side posts enough buffers for these reports now.
        connection.post_extra(connection.source.open.len() + connection.sink.adverts() + 3);
        let port = connection.suspension.wanted.unwrap_or_default();
        connection.suspension.sent = true;
        connection.close.deadline = Some(self.now + connection.settings.close_timeout);
        self.emit(Body::SuspComm(SuspComm { port }), Carrier::default());
        true
    }
}

impl Connection {
    /// Drops answers that the peer does not need, because all its advertisements become void with
    /// the suspension.
    pub(super) fn drop_needless_answers(&mut self) {
        if self.suspension.is_answering() && !self.close.is_aborting() {
            let reports =
                |control: &Control| matches!(control, Control::RdmaRdCompl { .. } | Control::RdmaWrCompl { .. });
            self.control.retain(reports);
        }
    }

    /// Ends everything that belongs to the TCP connection.
    pub(super) fn suspend_tcp(&mut self, now: Instant, next: Role, reconnect: Option<u16>) {
        self.advance();
        self.out.push_back(Output::Disconnect { abortive: false });
        self.phase = Phase::Suspended;
        self.suspension.next = Some(next);
        self.control.clear();
        self.ops.clear();
        self.credits = Credits::default();
        (self.credit_deadline, self.deadlock_deadline) = (None, None);
        self.credit_request.stop();
        self.echo.stop();
        self.close.restart();
        self.unregistered = None;
        self.sinks_refused = None;
        self.resize.suspend();
        self.pool.suspend(&mut self.out);
        for half in [Half::Out, Half::In] {
            if self.mode(half) != Mode::Combined {
                self.out.push_back(Output::Event(Event::ModeChanged { half, mode: Mode::Combined }));
            }
        }
        self.source.suspend(&mut self.out);
        self.sink.suspend(&mut self.out);
        self.startup_deadline = Some(now + self.settings.startup_timeout);
        self.out.push_back(Output::Event(Event::Suspended { reconnect }));
        self.advance();
    }
}
