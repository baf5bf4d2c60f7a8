//! A UDP socket of the tester, for datagrams to and from a port mapper.

use std::net::SocketAddr;

use tokio::net::UdpSocket;
use weft_core::wire::portmap::UDP_PORT;

/// A UDP socket of the tester.
#[derive(Debug)]
pub struct DatagramSocket {
    /// The tester's own address.
    pub tester: SocketAddr,
    /// The address of the target's port mapper.
    pub target: SocketAddr,
    pub(super) udp: Option<UdpSocket>,
}

impl DatagramSocket {
    /// Returns `address` as the traffic log shows it. The traffic log shows the target's port
    /// mapper with the port number of the specification, whatever its real port is, because readers
    /// of the log recognise a port mapper by that number.
    pub(super) fn named(&self, address: SocketAddr) -> SocketAddr {
        let port = if address == self.target { UDP_PORT } else { address.port() };
        SocketAddr::new(address.ip(), port)
    }
}
