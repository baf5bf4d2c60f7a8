//! The two addresses of a TCP connection.

use std::net::SocketAddr;

/// The addresses of a TCP connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// This side opened the connection.
    pub(super) connected: bool,
}
