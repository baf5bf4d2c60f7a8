//! The states of a connection. Section numbers are those of the SDP draft.

use super::startup::Startup;

/// The state of the connection.
#[derive(Debug)]
pub(super) enum Phase {
    /// Start-up, in streaming mode.
    Starting(Box<Startup>),
    /// The Connecting Peer uses iWARP and waits for HelloAck.
    WaitHelloAck,
    Open,
    /// The connection is suspended, between two TCP connections (section 13).
    Suspended,
    /// This side has ended the LLP connection, or the LLP connection was lost.
    Closed,
}
