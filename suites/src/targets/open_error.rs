//! Errors of opening a target, and the time limit for a connection attempt.

use std::net::SocketAddr;

use weft_peer::portmap::TableError;
use weft_peer::verbs::RnicError;
use weft_peer::workload::WorkloadError;

use super::down;

/// Seconds that a connection attempt may take.
pub(super) const CONNECT_SECONDS: f64 = 5.0;

/// Why a target cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be resolved.
    #[error("{}", down::headline(&unresolved(.address, .error)))]
    Resolve {
        /// The address in the target file.
        address: String,
        /// The reason.
        error: std::io::Error,
    },
    /// The tester cannot listen for an initiator at the address.
    #[error("cannot listen on {address}: {error}; name an address of this machine and a free port")]
    Listen {
        /// The address in the target file.
        address: SocketAddr,
        /// The reason.
        error: std::io::Error,
    },
    /// The tester's own TCP cannot be started on its interface.
    #[error("cannot start the tester's own TCP: {0}")]
    Wire(String),
    /// The builtin responder does not start.
    #[error("the builtin responder does not start: {0}")]
    Builtin(std::io::Error),
    /// The builtin SDP socket cannot be created.
    #[error("cannot create the builtin SDP socket: {0}")]
    Sdp(WorkloadError),
    /// A mapping cannot be added to the builtin port mapper.
    #[error("cannot add a mapping to the builtin port mapper: {0}")]
    Table(TableError),
    /// The RNIC of the builtin responder cannot be opened.
    #[error("cannot open the RNIC of the builtin responder: {0}")]
    Rnic(#[from] RnicError),
}

/// Returns why an address cannot be resolved, as a part of a headline. The resolver's message has
/// no prefix of the standard library.
pub(crate) fn unresolved(address: &str, error: &std::io::Error) -> String {
    let text = error.to_string();
    let why = text.rsplit_once("lookup address information: ").map_or(text.as_str(), |(_, why)| why);
    format!("{address} cannot be resolved: {why}")
}
