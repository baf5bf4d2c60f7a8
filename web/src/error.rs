//! The errors that prevent the dashboard server from starting.

use std::io;
use std::net::SocketAddr;

use weft_suites::store::StoreError;

/// Why the dashboard server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// There are no tokens, and the address to listen on is not a loopback address. Without tokens,
    /// every host in the network could use the dashboard.
    #[error("cannot listen on {0}: it is not a loopback address, and there are no tokens; add --token-file FILE")]
    NotLoopback(SocketAddr),
    /// Binding the address failed.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The results store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name of a target is not a valid folder name. The folder is for the runs against the
    /// target.
    #[error("invalid target name {0:?}: expected letters, digits, '.', '_' and '-', and no '.' at the beginning")]
    TargetName(String),
    /// An entry of the schedule has no target, or selects no case. The field is the message.
    #[error("schedule: {0}")]
    Schedule(String),
    /// The system returned no random bytes. Sessions need random bytes.
    #[error("cannot get random bytes from the system: {0}")]
    Random(#[from] getrandom::Error),
}
