//! Why the server cannot start, or stopped.

use std::io;
use std::net::SocketAddr;

use weft_suites::store::StoreError;

/// Why the dashboard cannot start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Without tokens, other hosts could reach the dashboard.
    #[error("cannot listen on {0}: it is not a loopback address, and there are no tokens; add --token-file FILE")]
    NotLoopback(SocketAddr),
    /// Binding the address failed.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
    /// The results store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name of a target cannot be the name of the folder for its runs.
    #[error("invalid target name {0:?}: expected letters, digits, '.', '_' and '-', and no '.' at the beginning")]
    TargetName(String),
    /// The system has no random bytes, which sessions need.
    #[error("the system has no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}
