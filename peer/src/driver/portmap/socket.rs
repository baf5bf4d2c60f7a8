//! A UDP socket of a port mapper, and its record.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use socket2::{Domain, Protocol, SockRef, Type};
use tokio::net::UdpSocket;
use weft_core::wire::portmap::UDP_PORT;

use crate::driver::clock::Clock;
use crate::driver::tape::{Direction, Tape, What};
use crate::portmap::Datagram;

/// Longer than any message; a longer datagram is not a message.
pub(super) const LONGEST: usize = 2048;

/// The owner of a socket.
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
    tape: Option<Tape>,
}

impl Socket {
    pub(super) fn bind(role: Role, address: SocketAddr, clock: Clock, tape: Option<Tape>) -> io::Result<Self> {
        let udp = udp_at(address)?;
        let local = udp.local_addr()?;
        Ok(Socket { role, udp, local, clock, tape })
    }

    /// A second socket with the same port, which is connected to `peer`: the kernel reports to it
    /// that nobody has the port there (ICMP). Datagrams from there come to it, too.
    pub(super) fn connected(&self, peer: SocketAddr) -> io::Result<UdpSocket> {
        // Only from here on: a port that was picked as one to be shared could be that of another
        // client of this user.
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

    /// The next datagram. Errors of single datagrams, such as those that an ICMP message brings,
    /// are passed over.
    pub(super) async fn receive(&self, buffer: &mut [u8; LONGEST]) -> io::Result<(usize, SocketAddr)> {
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

    /// A datagram arrived, here or at a socket that is connected.
    pub(super) fn received(&self, from: SocketAddr, octets: &[u8]) {
        self.record(Direction::FromTarget, from, octets);
    }

    /// Sends; a datagram that cannot be sent is as one that was lost.
    pub(super) async fn send(&self, datagram: &Datagram) {
        let sent = if datagram.aside {
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

    /// Whatever port the port mapper was given, its record names that of the specification, by
    /// which readers know it.
    fn record(&self, direction: Direction, peer: SocketAddr, octets: &[u8]) {
        if let Some(tape) = &self.tape {
            let (mut tester, mut target) = (self.local, peer);
            match self.role {
                Role::Client => target.set_port(UDP_PORT),
                Role::Server => tester.set_port(UDP_PORT),
            }
            let octets = Bytes::copy_from_slice(octets);
            tape.record(self.clock.now(), 0, direction, What::Datagram { tester, target, octets });
        }
    }
}

fn udp_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = unbound(address)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// IPv6 alone at an IPv6 address, so that one of each family can have the same port.
fn unbound(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}
