//! The two addresses of a TCP connection.

use std::net::SocketAddr;

/// The ends of the TCP connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// This side connected.
    pub(super) connected: bool,
}
