//! Kinds of Work Requests whose completion the machine waits for.

/// The Work Request that a completion reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Payload,
    Read,
    Write,
    DisConn,
    AbortConn,
    SuspCommAck,
}
