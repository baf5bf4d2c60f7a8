//! Errors of the links to a target.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

/// Why the tester could not perform a step. If the target sends bytes, closes or resets a
/// connection, this is not an error but a [`Received`](super::Received) value. The only exception
/// is a [`Reset`](LinkError::Reset) while the tester sends.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The connection could not be opened.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Address of the target.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The target is an initiator: it opens connections itself.
    #[error("weft cannot connect to the target: the target is an initiator, so it opens the connections itself")]
    Initiator,
    /// The target is a responder: it opens no connections.
    #[error("weft cannot wait for a connection from {address}: the target is a responder and opens no connections")]
    Responder {
        /// Address of the target.
        address: SocketAddr,
    },
    /// The target did not answer the connection attempt in time.
    #[error("cannot connect to {address}: no answer within {} s", .after.as_secs_f32())]
    ConnectTimeout {
        /// Address of the target.
        address: SocketAddr,
        /// How long the tester waited.
        after: Duration,
    },
    /// The tester has already closed its half or reset the connection.
    #[error("the tester has closed this connection")]
    Finished,
    /// The operating system reported an error.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The target reset the connection while the tester was sending.
    /// [`TesterConnection::receive`](super::TesterConnection::receive) reports the reset too.
    #[error("the target reset the connection")]
    Reset,
    /// The tester cannot choose TCP segments on this link, because the TCP of the operating system
    /// chooses them.
    #[error("the TCP of the operating system chooses the segments, so the tester cannot choose them")]
    NoSegments,
    /// The target accepted no more bytes within the send time-out.
    #[error("the target accepted no bytes for {} s", .after.as_secs_f32())]
    SendTimeout {
        /// The send time-out.
        after: Duration,
    },
}
