//! The link to a target that queries a port mapper and then connects. The tester acts as the port
//! mapper. It has one UDP socket for all test cases. For each case it opens the TCP ports that it
//! announces.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use tokio::io::ReadBuf;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::time::timeout_at;

use super::accept_error::is_connection_error;
use super::call::Call;
use super::link_error::LinkError;
use super::tcp::{RealLink, SEND_TIMEOUT};
use crate::time::Instant;

/// Maximum number of connections that TCP queues on each announced address.
const BACKLOG: u32 = 16;
/// Size of a receive buffer in bytes. The buffer is larger than any message.
const MAX_DATAGRAM_LEN: usize = 2048;

/// The UDP socket of the tester's port mapper. Clones share the socket.
#[derive(Debug, Clone)]
pub struct MapperSocket {
    udp: Arc<UdpSocket>,
    address: SocketAddr,
}

impl MapperSocket {
    /// Receives datagrams at `address`. Port 0 picks a free port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let udp = Arc::new(udp_at(address)?);
        let address = udp.local_addr()?;
        Ok(MapperSocket { udp, address })
    }

    /// Returns the address that the socket is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Creates a new link on this socket. Its clock starts now, and its traffic log is empty.
    #[must_use]
    pub fn link(&self) -> MapperLink {
        MapperLink {
            mapper: self.clone(),
            other_port: None,
            listening: Vec::new(),
            closed: Vec::new(),
            real: RealLink::start(),
        }
    }

    /// Discards the datagrams that have arrived and were not read.
    pub fn forget(&self) {
        let mut buffer = [0; MAX_DATAGRAM_LEN];
        while self.udp.try_recv_from(&mut buffer).is_ok() {}
    }
}

/// The link to a target that queries the port mapper and then connects.
#[derive(Debug)]
pub struct MapperLink {
    pub(super) mapper: MapperSocket,
    /// A UDP socket on another port of the tester.
    other_port: Option<UdpSocket>,
    listening: Vec<(TcpListener, SocketAddr)>,
    /// Ports that are reserved and refuse connections.
    closed: Vec<TcpSocket>,
    pub(super) real: RealLink,
}

impl MapperLink {
    /// Returns the address of the tester's port mapper, which the target queries.
    #[must_use]
    pub fn mapper_address(&self) -> SocketAddr {
        self.mapper.address
    }

    /// Reserves a new TCP address of the tester, on the host of its port mapper. Connections to
    /// this address are accepted if `listens` is set, and refused otherwise.
    pub(super) fn reserve_address(&mut self, listens: bool) -> Result<SocketAddr, LinkError> {
        let failed = |source| LinkError::Io { doing: "reserving a port", source };
        let at = SocketAddr::new(self.mapper.address.ip(), 0);
        let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
        socket.bind(at).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        if listens {
            self.listening.push((socket.listen(BACKLOG).map_err(failed)?, address));
        } else {
            self.closed.push(socket);
        }
        Ok(address)
    }

    /// Sends a datagram, from another port of the same host if `other_port` is set. Returns the
    /// source address.
    pub(super) async fn answer(
        &mut self,
        other_port: bool,
        to: SocketAddr,
        octets: &[u8],
    ) -> Result<SocketAddr, LinkError> {
        let failed = |source| LinkError::Io { doing: "sending a datagram", source };
        if other_port && self.other_port.is_none() {
            self.other_port = Some(udp_at(SocketAddr::new(self.mapper.address.ip(), 0)).map_err(failed)?);
        }
        let udp = self.other_port.as_ref().filter(|_| other_port).unwrap_or(&self.mapper.udp);
        match udp.send_to(octets, to).await {
            // A previous datagram caused an ICMP "port unreachable" message. The new datagram can
            // still arrive.
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(failed(error)),
            _ => udp.local_addr().map_err(failed),
        }
    }

    pub(super) async fn next_call(&mut self, deadline: Instant) -> Result<Option<Call>, LinkError> {
        loop {
            let mut buffer = [0; MAX_DATAGRAM_LEN];
            let (mapper, other_port, listening) = (&self.mapper, self.other_port.as_ref(), &self.listening);
            let next = poll_fn(|cx| {
                let sockets = [
                    Some((&*mapper.udp, mapper.address)),
                    other_port.and_then(|udp| Some((udp, udp.local_addr().ok()?))),
                ];
                for (udp, to) in sockets.into_iter().flatten() {
                    let mut read = ReadBuf::new(&mut buffer);
                    match udp.poll_recv_from(cx, &mut read) {
                        Poll::Ready(Ok(from)) => {
                            let octets = Bytes::copy_from_slice(read.filled());
                            return Poll::Ready(Ok(Arrival::Datagram { to, from, octets }));
                        }
                        // The error reports an ICMP message about a previous datagram. The error
                        // does not affect the next datagram.
                        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                            return Poll::Ready(Ok(Arrival::Nothing));
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => {}
                    }
                }
                for (listener, to) in listening {
                    match listener.poll_accept(cx) {
                        Poll::Ready(Ok((stream, from))) => {
                            return Poll::Ready(Ok(Arrival::Connection { to: *to, stream, from }));
                        }
                        Poll::Ready(Err(error)) if is_connection_error(&error) => {
                            return Poll::Ready(Ok(Arrival::Nothing));
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => {}
                    }
                }
                Poll::Pending
            });
            let failed = |source| LinkError::Io { doing: "waiting for the target", source };
            let arrival = match timeout_at(self.real.clock.to_tokio(deadline), next).await {
                Err(_) => return Ok(None),
                Ok(arrival) => arrival.map_err(failed)?,
            };
            match arrival {
                Arrival::Nothing => {}
                Arrival::Datagram { to, from, octets } => return Ok(Some(Call::Datagram { to, from, octets })),
                Arrival::Connection { to, stream, from } => {
                    let connection = self.real.connection(stream, from, SEND_TIMEOUT).map_err(failed)?;
                    return Ok(Some(Call::Connection { to, connection: Box::new(connection) }));
                }
            }
        }
    }
}

enum Arrival {
    Nothing,
    Datagram { to: SocketAddr, from: SocketAddr, octets: Bytes },
    Connection { to: SocketAddr, stream: TcpStream, from: SocketAddr },
}

fn udp_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let udp = std::net::UdpSocket::bind(address)?;
    udp.set_nonblocking(true)?;
    UdpSocket::from_std(udp)
}
