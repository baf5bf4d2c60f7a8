//! Progress of a suspension (section 13).

use super::Role;

/// State of a suspension.
#[derive(Debug, Default)]
pub(super) struct Suspension {
    /// Set if the user requests a suspension: TCP port of this side, to which the peer reconnects.
    pub(super) wanted: Option<u16>,
    /// This side has sent SuspComm.
    pub(super) sent: bool,
    /// Set if the peer has sent SuspComm and waits for SuspCommAck: TCP port of the peer, to which
    /// this side reconnects.
    pub(super) answers: Option<u16>,
    /// This side has sent SuspCommAck.
    pub(super) answered: bool,
    /// Set once the connection is suspended: role of this side on the next TCP connection.
    pub(super) next: Option<Role>,
    /// The connection has been suspended and reconnected at least once.
    pub(super) restarted: bool,
}

impl Suspension {
    /// Returns whether this side starts no new transfers, because one of the peers requested a
    /// suspension.
    pub(super) fn is_halting(&self) -> bool {
        self.wanted.is_some() || self.answers.is_some()
    }

    /// Returns whether this side sends nothing more on the current TCP connection (SDP-13.1.1-8,
    /// SDP-13.1.1-12).
    pub(super) fn is_mute(&self) -> bool {
        self.answered || self.sent && self.answers.is_none()
    }

    /// Returns whether the peer has sent SuspComm. Such a peer gives no more credit, so this side
    /// sends only reports of Reads and Writes, and SuspCommAck.
    pub(super) fn is_answering(&self) -> bool {
        self.answers.is_some()
    }
}
