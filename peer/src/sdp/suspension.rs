//! Progress of a suspension (section 13 of the SDP draft).

use super::Role;

/// State of a suspension.
#[derive(Debug, Default)]
pub(super) struct Suspension {
    /// TCP port of this side, to which the peer reconnects. Set if the user requests a suspension.
    pub(super) wanted: Option<u16>,
    /// This side has sent SuspComm.
    pub(super) sent: bool,
    /// TCP port of the peer, to which this side reconnects. Set while the peer waits for
    /// SuspCommAck after its SuspComm.
    pub(super) answers: Option<u16>,
    /// This side has sent SuspCommAck.
    pub(super) answered: bool,
    /// Role of this side on the next TCP connection. Set as soon as the connection is suspended.
    pub(super) next: Option<Role>,
    /// The connection has been suspended and reconnected at least once.
    pub(super) restarted: bool,
}

impl Suspension {
    /// Returns whether this side starts no new transfers, because one of the two sides requested a
    /// suspension.
    pub(super) fn is_halting(&self) -> bool {
        self.wanted.is_some() || self.answers.is_some()
    }

    /// Returns whether this side sends nothing more on the current TCP connection (SDP-13.1.1-8,
    /// SDP-13.1.1-12).
    pub(super) fn has_stopped_sending(&self) -> bool {
        self.answered || self.sent && self.answers.is_none()
    }

    /// Returns whether the peer has sent SuspComm. After SuspComm the peer gives no more credit, so
    /// this side sends only reports of Reads and Writes, and SuspCommAck.
    pub(super) fn is_answering(&self) -> bool {
        self.answers.is_some()
    }
}
