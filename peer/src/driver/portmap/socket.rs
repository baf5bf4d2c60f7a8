//! A UDP socket of a port mapper or of its client. The socket records its datagrams in a traffic
//! log.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use socket2::{Domain, Protocol, SockRef, Type};
use tokio::net::UdpSocket;
use weft_core::wire::portmap::UDP_PORT;

use crate::driver::clock::Clock;
use crate::driver::traffic_log::{Direction, EventContent, TrafficLog};
use crate::portmap::Datagram;

/// Size of a receive buffer in bytes. The buffer is larger than any message, so a datagram that
/// fills the buffer is not a message.
pub(super) const MAX_DATAGRAM_LEN: usize = 2048;

/// The side that owns a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

#[derive(Debug)]
pub(super) struct Socket {
    role: Role,
    udp: UdpSocket,
    local: SocketAddr,
    clock: Clock,
    traffic: Option<TrafficLog>,
}

impl Socket {
    pub(super) fn bind(role: Role, address: SocketAddr, clock: Clock, traffic: Option<TrafficLog>) -> io::Result<Self> {
        let udp = udp_at(address)?;
        let local = udp.local_addr()?;
        Ok(Socket { role, udp, local, clock, traffic })
    }

    /// Creates a second socket on the same local port, connected to `peer`. If the peer's port is
    /// closed (ICMP), the kernel reports this to the second socket. Datagrams from `peer` also
    /// arrive on the second socket.
    pub(super) fn connected(&self, peer: SocketAddr) -> io::Result<UdpSocket> {
        // The option is set after the first socket has its port. If the option were set before, the
        // kernel could pick a port that another process of the same user shares.
        SockRef::from(&self.udp).set_reuse_port(true)?;
        let socket = unbound(self.local)?;
        socket.set_reuse_port(true)?;
        socket.bind(&self.local.into())?;
        socket.connect(&peer.into())?;
        UdpSocket::from_std(socket.into())
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Waits for the next datagram. Errors that concern one datagram, such as a received ICMP
    /// message, are ignored.
    pub(super) async fn receive(&self, buffer: &mut [u8; MAX_DATAGRAM_LEN]) -> io::Result<(usize, SocketAddr)> {
        loop {
            match self.udp.recv_from(buffer).await {
                Ok((octets, from)) => {
                    self.received(from, buffer.get(..octets).unwrap_or_default());
                    return Ok((octets, from));
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted) => {
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Records a datagram that arrived on this socket or on a [connected](Self::connected) socket.
    pub(super) fn received(&self, from: SocketAddr, octets: &[u8]) {
        self.record(Direction::FromTarget, from, octets);
    }

    /// Sends a datagram. A datagram that cannot be sent counts as lost.
    pub(super) async fn send(&self, datagram: &Datagram) {
        let sent = if datagram.from_other_port {
            match udp_at(SocketAddr::new(self.local.ip(), 0)) {
                Ok(other) => other.send_to(&datagram.octets, datagram.to).await,
                Err(error) => Err(error),
            }
        } else {
            self.record(Direction::ToTarget, datagram.to, &datagram.octets);
            self.udp.send_to(&datagram.octets, datagram.to).await
        };
        if let Err(error) = sent {
            tracing::debug!(to = %datagram.to, %error, "a datagram could not be sent");
        }
    }

    /// Records a datagram. For the port mapper, the record shows the port number of the
    /// specification instead of the real port number. Readers of the log recognise a port mapper by
    /// the port number of the specification.
    fn record(&self, direction: Direction, peer: SocketAddr, octets: &[u8]) {
        if let Some(traffic) = &self.traffic {
            let (mut tester, mut target) = (self.local, peer);
            match self.role {
                Role::Client => target.set_port(UDP_PORT),
                Role::Server => tester.set_port(UDP_PORT),
            }
            let octets = Bytes::copy_from_slice(octets);
            traffic.record(self.clock.now(), 0, direction, EventContent::Datagram { tester, target, octets });
        }
    }
}

fn udp_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = unbound(address)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Creates a socket that is not bound. An IPv6 socket accepts only IPv6, so that both families can
/// use the same port.
fn unbound(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}
