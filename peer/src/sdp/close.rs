//! How a connection ends (section 8.2): DisConn both ways and the end of TCP, or AbortConn, or TCP
//! alone.

use super::connection::{Connection, Phase};
use super::next::Control;
use super::{Event, Output, Violation};
use crate::time::Instant;

/// The state of the close.
#[derive(Debug, Default)]
pub(super) struct Closing {
    /// The user sends no more.
    requested: bool,
    /// MSeq of this side's DisConn.
    pub(super) sent: Option<u32>,
    /// The RNIC has sent it, or the peer has acknowledged it.
    out: bool,
    /// The peer's DisConn came.
    received: bool,
    /// On this TCP connection.
    received_here: bool,
    /// This side ends TCP: the peer's DisConn came before its own was sent, or crossed it (C26).
    ends: bool,
    /// Everything is sent. TCP ends when the peer has received it, or at the deadline.
    lingers: bool,
    /// The peer's AbortConn came.
    aborted: bool,
    /// AbortConn is to be sent, or is on its way; why.
    aborting: Option<Option<Violation>>,
    /// The connection is over, gracefully.
    graceful: bool,
    pub(super) deadline: Option<Instant>,
}

impl Closing {
    pub(super) fn ask(&mut self) {
        self.requested = true;
    }

    pub(super) fn is_requested(&self) -> bool {
        self.requested
    }

    /// Section 8.2.1, steps 4 and R3: DisConn arrived, and neither side sent AbortConn. This side's
    /// own DisConn is out, too.
    pub(super) fn is_graceful(&self) -> bool {
        self.graceful || self.received && !self.aborted && self.aborting.is_none() && self.out
    }

    /// The peer has seen everything up to here.
    pub(super) fn acknowledged(&mut self, mseq_ack: u32) {
        self.out |= self.sent.is_some_and(|own| super::credits::reached(mseq_ack, own));
    }

    /// TCP is another one. Nothing that a suspension hands over shows that a half has ended
    /// (section 13.1.1, step 5), and its Hello initializes the state of the connection: a DisConn
    /// that was sent before comes again.
    pub(super) fn restart(&mut self) {
        (self.sent, self.out, self.received_here, self.deadline) = (None, false, false, None);
    }

    pub(super) fn over(&mut self, graceful: bool) {
        self.graceful = graceful;
    }

    /// The peer's DisConn came: it sends no more data.
    pub(super) fn has_received(&self) -> bool {
        self.received
    }

    /// The same, on this TCP connection: it comes once.
    pub(super) fn has_received_here(&self) -> bool {
        self.received_here
    }

    /// AbortConn is all that may still be sent.
    pub(super) fn is_aborting(&self) -> bool {
        self.aborting.is_some()
    }
}

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
