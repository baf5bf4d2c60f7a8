//! Progress of the close of a connection (section 8.2 of the SDP draft).

use super::Violation;
use crate::time::Instant;

/// State of the close.
#[derive(Debug, Default)]
pub(super) struct Closing {
    /// The user has shut down the sending half-connection.
    pub(super) requested: bool,
    /// MSeq of this side's DisConn. `None` until the DisConn is sent.
    pub(super) sent: Option<u32>,
    /// The RNIC has sent this side's DisConn, or the peer has acknowledged it.
    pub(super) out: bool,
    /// The peer's DisConn has arrived. The peer then sends no more data.
    pub(super) received: bool,
    /// The peer's DisConn has arrived on the current TCP connection. A second DisConn on this
    /// connection is a violation.
    pub(super) received_here: bool,
    /// This side has to end TCP: the peer's DisConn arrived before this side sent its own DisConn,
    /// or the two DisConns crossed.
    pub(super) ends: bool,
    /// All messages are sent. TCP ends when the peer has received these messages, or at the
    /// deadline.
    pub(super) lingers: bool,
    /// The peer's AbortConn has arrived.
    pub(super) aborted: bool,
    /// Set while AbortConn is due or in flight. If a violation by the peer is the reason for
    /// AbortConn, the inner value is this violation.
    pub(super) aborting: Option<Option<Violation>>,
    /// The connection has ended gracefully.
    pub(super) graceful: bool,
    pub(super) deadline: Option<Instant>,
}

impl Closing {
    /// Returns whether the close is graceful: the peer's DisConn arrived, neither side sent
    /// AbortConn, and this side's DisConn was sent (section 8.2.1, steps 4 and R3).
    pub(super) fn is_graceful(&self) -> bool {
        self.graceful || self.received && !self.aborted && self.aborting.is_none() && self.out
    }

    /// Notes that the RNIC has sent this side's DisConn. `linger_end` is the deadline that applies
    /// if this side starts to end TCP now.
    pub(super) fn dis_conn_sent(&mut self, linger_end: Instant) {
        self.out = true;
        self.linger_when_done(linger_end);
    }

    /// Starts to end TCP if both DisConns are done and this side has to end TCP. The peer may send
    /// updates and completions until it has received this side's DisConn. If this side ended TCP
    /// before these messages arrived, the peer would observe a reset. Therefore this side keeps TCP
    /// open for [`Settings::close_linger`](super::Settings::close_linger), which ends at
    /// `linger_end`.
    pub(super) fn linger_when_done(&mut self, linger_end: Instant) {
        if self.received && self.out && self.ends && !self.is_aborting() {
            self.lingers = true;
            self.deadline = Some(linger_end);
        }
    }

    /// Notes that the peer has received all messages up to `mseq_ack`.
    pub(super) fn acknowledged(&mut self, mseq_ack: u32) {
        self.out |= self.sent.is_some_and(|own| super::credits::reached(mseq_ack, own));
    }

    /// Resets the state for a new TCP connection. The new connection does not inherit the
    /// information that a half-connection has ended (section 13.1.1, step 5). Therefore a DisConn
    /// that was sent on the previous TCP connection must be sent again.
    pub(super) fn restart(&mut self) {
        (self.sent, self.out, self.received_here, self.deadline) = (None, false, false, None);
    }

    /// Returns whether this side may send only AbortConn.
    pub(super) fn is_aborting(&self) -> bool {
        self.aborting.is_some()
    }
}
