//! The kinds of work that the machine gives to the RNIC and waits for.

/// The work that a completion reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Payload,
    Read,
    Write,
    DisConn,
    AbortConn,
    SuspCommAck,
}
