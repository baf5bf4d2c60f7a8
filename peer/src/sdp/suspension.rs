//! How far a suspension is (section 13).

use super::Role;

/// The state of a suspension.
#[derive(Debug, Default)]
pub(super) struct Suspension {
    /// The user wants it; where the peer shall connect to.
    pub(super) wanted: Option<u16>,
    /// SuspComm is sent.
    pub(super) sent: bool,
    /// The peer's SuspComm is to be answered; its port.
    pub(super) answers: Option<u16>,
    /// SuspCommAck is sent.
    pub(super) answered: bool,
    /// TCP has ended; the next role of this side.
    pub(super) next: Option<Role>,
    /// It has happened.
    pub(super) restarted: bool,
}

impl Suspension {
    /// Nothing new is begun.
    pub(super) fn is_halting(&self) -> bool {
        self.wanted.is_some() || self.answers.is_some()
    }

    /// Nothing more is sent on this TCP connection (SDP-13.1.1-8, SDP-13.1.1-12).
    pub(super) fn is_mute(&self) -> bool {
        self.answered || self.sent && self.answers.is_none()
    }

    /// The peer gives no credit any more: only reports of Reads and Writes are still sent.
    pub(super) fn is_answering(&self) -> bool {
        self.answers.is_some()
    }
}
