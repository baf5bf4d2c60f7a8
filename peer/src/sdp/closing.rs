//! How far the close of a connection is (section 8.2).

use super::Violation;
use crate::time::Instant;

/// The state of the close.
#[derive(Debug, Default)]
pub(super) struct Closing {
    /// The user sends no more.
    pub(super) requested: bool,
    /// MSeq of this side's DisConn.
    pub(super) sent: Option<u32>,
    /// The RNIC has sent it, or the peer has acknowledged it.
    pub(super) out: bool,
    /// The peer's DisConn came.
    pub(super) received: bool,
    /// On this TCP connection.
    pub(super) received_here: bool,
    /// This side ends TCP: the peer's DisConn came before its own was sent, or crossed it (C26).
    pub(super) ends: bool,
    /// Everything is sent. TCP ends when the peer has received it, or at the deadline.
    pub(super) lingers: bool,
    /// The peer's AbortConn came.
    pub(super) aborted: bool,
    /// AbortConn is to be sent, or is on its way; why.
    pub(super) aborting: Option<Option<Violation>>,
    /// The connection is over, gracefully.
    pub(super) graceful: bool,
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
