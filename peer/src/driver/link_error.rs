//! Errors of the links to a target.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

/// Why the tester could not do a step. A target's actions on a connection are
/// [`Received`](super::Received), not errors; only a [`Reset`](LinkError::Reset) during sending is
/// reported here too.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No connection came about.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The target.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The target is an initiator: it connects itself.
    #[error("the target is an initiator: weft waits for its connection and cannot connect to it")]
    Initiator,
    /// The target is a responder: nobody comes.
    #[error("{address} is a responder: weft connects to it and cannot wait for its connection")]
    Responder {
        /// The target.
        address: SocketAddr,
    },
    /// The target did not answer the connection attempt in time.
    #[error("cannot connect to {address}: no answer within {} s", .after.as_secs_f32())]
    ConnectTimeout {
        /// The target.
        address: SocketAddr,
        /// How long was waited.
        after: Duration,
    },
    /// The tester closed its half before, or reset the connection.
    #[error("the tester has closed this connection")]
    Finished,
    /// The machine failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The connection was reset while octets were sent. [`TesterConnection::receive`](super::TesterConnection::receive) reports it
    /// again.
    #[error("the target reset the connection")]
    Reset,
    /// The target took no more octets for so long.
    #[error("the target accepted no bytes for {} s", .after.as_secs_f32())]
    SendTimeout {
        /// How long was waited.
        after: Duration,
    },
}
