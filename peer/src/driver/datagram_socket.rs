//! A UDP socket of the tester, for datagrams to and from a port mapper.

use std::net::SocketAddr;

use tokio::net::{TcpSocket, UdpSocket};
use weft_core::wire::portmap::UDP_PORT;

/// A UDP socket of the tester.
#[derive(Debug)]
pub struct DatagramSocket {
    /// The tester's own address.
    pub tester: SocketAddr,
    /// The address of the target's port mapper.
    pub target: SocketAddr,
    pub(super) udp: Option<UdpSocket>,
    /// Keeps the port for TCP, because the tester's next connection comes from it.
    pub(super) _tcp: Option<TcpSocket>,
}

impl DatagramSocket {
    /// Returns the address that the traffic log shows for `address`. For the target's port mapper,
    /// the log shows the port number of the specification instead of the real port number. Readers
    /// of the log recognise a port mapper by the port number of the specification.
    pub(super) fn named(&self, address: SocketAddr) -> SocketAddr {
        let port = if address == self.target { UDP_PORT } else { address.port() };
        SocketAddr::new(address.ip(), port)
    }
}
