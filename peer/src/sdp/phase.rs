//! The states of a connection.

use super::startup::Startup;

/// The state of the connection.
#[derive(Debug)]
pub(super) enum Phase {
    /// Streaming mode.
    Starting(Box<Startup>),
    /// Connecting, in iWARP: HelloAck is to come.
    WaitHelloAck,
    Open,
    /// Between two LLP connections (section 13).
    Suspended,
    /// The LLP connection is ended by this side, or gone.
    Over,
}
