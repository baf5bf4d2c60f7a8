//! How a connection ends (section 8.2): DisConn both ways and the end of TCP, or AbortConn, or TCP
//! alone.

use super::connection::Connection;
use super::control::Control;
use super::phase::Phase;
use super::{Event, Output, Violation};
use crate::time::Instant;

impl Connection {
    /// DisConn is due: the user sends no more, and all that was posted is out.
    pub(super) fn wants_dis_conn(&self) -> bool {
        self.close.requested && self.close.sent.is_none() && self.source.is_done()
    }

    /// The peer's DisConn (section 8.2.1).
    pub(super) fn dis_conn(&mut self, now: Instant, mseq_ack: u32) -> Result<(), Violation> {
        if let Some(octets) = self.sink.due() {
            return Err(Violation::Owed(octets));
        }
        let again = core::mem::replace(&mut self.close.received, true);
        self.close.received_here = true;
        self.close.ends = self.close.sent.is_none_or(|own| !super::credits::reached(mseq_ack, own));
        self.sink.end(&mut self.out);
        if !again {
            self.out.push_back(Output::Event(Event::PeerClosed));
        }
        self.close.deadline = self.close.sent.map(|_| now + self.settings.close_timeout);
        self.hang_up_when_done(now);
        Ok(())
    }

    /// The RNIC has sent this side's DisConn.
    pub(super) fn dis_conn_sent(&mut self, now: Instant) {
        self.close.out = true;
        self.hang_up_when_done(now);
    }

    /// This side is the one to end TCP. Until the peer has this side's DisConn it may send updates
    /// and completions; TCP that ends before them would look like a reset to it.
    fn hang_up_when_done(&mut self, now: Instant) {
        if self.close.received && self.close.out && self.close.ends && !self.close.is_aborting() {
            self.close.lingers = true;
            self.close.deadline = Some(now + self.settings.close_linger);
        }
    }

    /// The peer has seen everything up to here.
    pub(super) fn has_seen(&mut self, mseq_ack: u32) {
        // It may be acknowledged by an AbortConn.
        let lingers = self.close.lingers && !self.is_over();
        if lingers && self.close.sent.is_some_and(|own| super::credits::reached(mseq_ack, own)) {
            self.finish_close();
        }
    }

    fn finish_close(&mut self) {
        self.advance();
        self.end(false, None, Some(false));
    }

    /// The peer's AbortConn.
    pub(super) fn abort_conn(&mut self) {
        self.close.aborted = true;
        self.end(true, None, Some(true));
    }

    /// Abortive close (section 8.2.2): after a DisConn it takes an AbortConn, otherwise TCP ends at
    /// once.
    pub(super) fn begin_abort(&mut self, now: Instant, violation: Option<Violation>) {
        if self.is_over() || self.close.is_aborting() {
            return;
        }
        self.close.aborting = Some(violation);
        // After a SuspComm or SuspCommAck nothing is sent (SDP-13.1.1-8, SDP-13.1.1-12), and the
        // peer may end TCP at any time.
        if self.close.sent.is_none() || !matches!(self.phase, Phase::Open) || self.suspension.is_mute() {
            return self.hang_up();
        }
        // What has not been sent is discarded.
        self.control.clear();
        self.control.push_back(Control::AbortConn);
        self.close.deadline = Some(now + self.settings.close_timeout);
    }

    /// Ends TCP abortively.
    pub(super) fn hang_up(&mut self) {
        let violation = self.close.aborting.flatten();
        self.end(true, violation, Some(true));
    }

    /// AbortConn is out: TCP ends in the ordinary way (SDP-8.2.2-13), so that the peer gets it; but
    /// not while a Read may still fill a receive.
    pub(super) fn take_down(&mut self) {
        let violation = self.close.aborting.flatten();
        self.end(true, violation, Some(self.sink.is_reading()));
    }

    /// The LLP connection failed.
    pub(super) fn lose(&mut self) {
        self.close.aborting.get_or_insert(None);
        self.hang_up();
    }

    /// No progress while closing.
    pub(super) fn give_up(&mut self, now: Instant) {
        if self.close.is_aborting() {
            self.hang_up();
        } else if self.close.lingers {
            self.finish_close();
        } else {
            self.begin_abort(now, None);
        }
    }
}
