//! A tester's socket for datagrams of the port mapper.

use std::net::SocketAddr;

use tokio::net::UdpSocket;
use weft_core::wire::portmap::UDP_PORT;

/// A socket of the tester's for datagrams.
#[derive(Debug)]
pub struct DatagramSocket {
    /// Its own address.
    pub tester: SocketAddr,
    /// The target's port mapper.
    pub target: SocketAddr,
    pub(super) udp: Option<UdpSocket>,
}

impl DatagramSocket {
    pub(super) fn in_process(tester: SocketAddr, target: SocketAddr) -> Self {
        DatagramSocket { tester, target, udp: None }
    }

    pub(super) fn real(tester: SocketAddr, target: SocketAddr, udp: UdpSocket) -> Self {
        DatagramSocket { tester, target, udp: Some(udp) }
    }

    /// Whatever port the port mapper has, the record names that of the specification, by which
    /// readers know it.
    pub(super) fn named(&self, address: SocketAddr) -> SocketAddr {
        let port = if address == self.target { UDP_PORT } else { address.port() };
        SocketAddr::new(address.ip(), port)
    }
}
