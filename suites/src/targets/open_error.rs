//! Errors of opening a target, and how long it may take.

use std::net::SocketAddr;

use weft_peer::portmap::TableError;
use weft_peer::verbs::RnicError;
use weft_peer::workload::WorkloadError;

/// Seconds that a connection attempt may take.
pub(super) const CONNECT_SECONDS: f64 = 5.0;

/// Why a target is not there.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its address means nothing.
    #[error("target unreachable: {address}: {}", unresolved(.error))]
    Resolve {
        /// The address in the target file.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// An initiator cannot be waited for there.
    #[error("cannot listen on {address}: {error}: name an address of this machine and a port that is free")]
    Listen {
        /// The address in the target file.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The builtin responder does not start.
    #[error("the builtin responder does not start: {0}")]
    Builtin(std::io::Error),
    /// Its SDP socket has no memory.
    #[error("the builtin responder has no SDP socket: {0}")]
    Sdp(WorkloadError),
    /// Its port mapper's table.
    #[error("the builtin responder has no port mapper: {0}")]
    Table(TableError),
    /// Its RNIC does not open.
    #[error("the builtin responder has no RNIC: {0}")]
    Rnic(#[from] RnicError),
}

/// The resolver's own words, without those of the library in front of them.
fn unresolved(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once("lookup address information: ").map_or(text.clone(), |(_, why)| why.to_owned())
}
