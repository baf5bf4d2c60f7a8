//! End of a connection (section 8.2 of the SDP draft): by DisConn in both directions, by AbortConn,
//! or by the end of TCP alone.

use super::connection::Connection;
use super::control::Control;
use super::inbound::Inbound;
use super::phase::Phase;
use super::{Event, Output, Violation};
use crate::time::Instant;

/// Messages of the peer.
impl Inbound<'_> {
    /// Processes the peer's DisConn (section 8.2.1).
    pub(super) fn dis_conn(&mut self, mseq_ack: u32) -> Result<(), Violation> {
        let (connection, now) = (&mut *self.connection, self.now);
        if let Some(octets) = connection.sink.due() {
            return Err(Violation::Owed(octets));
        }
        let again = core::mem::replace(&mut connection.close.received, true);
        connection.close.received_here = true;
        connection.close.ends = connection.close.sent.is_none_or(|own| !super::credits::reached(mseq_ack, own));
        connection.sink.end(&mut connection.out);
        if !again {
            connection.out.push_back(Output::Event(Event::PeerClosed));
        }
        connection.close.deadline = connection.close.sent.map(|_| now + connection.settings.close_timeout);
        connection.close.linger_when_done(now + connection.settings.close_linger);
        Ok(())
    }

    /// Notes that the peer has received all messages up to `mseq_ack`.
    pub(super) fn has_seen(&mut self, mseq_ack: u32) {
        // `mseq_ack` can come from an AbortConn. In this case, the AbortConn has already ended the
        // connection.
        let lingers = self.connection.close.lingers && !self.connection.is_over();
        if lingers && self.connection.close.sent.is_some_and(|own| super::credits::reached(mseq_ack, own)) {
            self.connection.finish_close();
        }
    }

    /// Processes the peer's AbortConn.
    pub(super) fn abort_conn(&mut self) {
        self.connection.close.aborted = true;
        self.connection.end(true, None, Some(true));
    }
}

impl Connection {
    fn finish_close(&mut self) {
        self.advance();
        self.end(false, None, Some(false));
    }

    /// Starts an abortive close (section 8.2.2). If this side has sent DisConn, it sends AbortConn
    /// before TCP ends. Otherwise TCP ends at once.
    pub(super) fn begin_abort(&mut self, now: Instant, violation: Option<Violation>) {
        if self.is_over() || self.close.is_aborting() {
            return;
        }
        self.close.aborting = Some(violation);
        // After a SuspComm or SuspCommAck this side sends nothing (SDP-13.1.1-8, SDP-13.1.1-12),
        // and the peer can end TCP at any time.
        if self.close.sent.is_none() || !matches!(self.phase, Phase::Open) || self.suspension.has_stopped_sending() {
            return self.reset_tcp();
        }
        // Messages that have not been sent are discarded.
        self.control.clear();
        self.control.push_back(Control::AbortConn);
        self.close.deadline = Some(now + self.settings.close_timeout);
    }

    /// Ends TCP abortively.
    pub(super) fn reset_tcp(&mut self) {
        let violation = self.close.aborting.flatten();
        self.end(true, violation, Some(true));
    }

    /// Ends TCP after AbortConn was sent. TCP ends without a reset, because after a reset the peer
    /// might not receive the AbortConn (SDP-8.2.2-13). But if a Read could still fill a receive,
    /// this side resets TCP.
    pub(super) fn abort_sent(&mut self) {
        let violation = self.close.aborting.flatten();
        self.end(true, violation, Some(self.sink.is_reading()));
    }

    /// Ends the connection, because the LLP connection has failed.
    pub(super) fn connection_failed(&mut self) {
        self.close.aborting.get_or_insert(None);
        self.reset_tcp();
    }

    /// Handles a close whose deadline has passed without progress.
    pub(super) fn close_timed_out(&mut self, now: Instant) {
        if self.close.is_aborting() {
            self.reset_tcp();
        } else if self.close.lingers {
            self.finish_close();
        } else {
            self.begin_abort(now, None);
        }
    }
}
