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
use tokio::net::{TcpListener, TcpSocket, UdpSocket};
use tokio::time::{sleep_until, timeout_at};

use super::accept_error::is_of_one_connection;
use super::clock::Clock;
use super::link_error::LinkError;
use super::tape::Tape;
use super::tcp::{SEND_TIMEOUT, TcpTester};
use crate::time::Instant;

/// Connections that TCP queues on each announced address.
const BACKLOG: u32 = 16;
/// A buffer size in bytes, longer than any message.
const LONGEST: usize = 2048;

/// The UDP socket of the tester's port mapper. Clones are the same socket.
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

    /// The address that the socket is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A new link on this socket. Its clock starts now, and its tape is empty.
    #[must_use]
    pub fn link(&self) -> MapperLink {
        MapperLink {
            mapper: self.clone(),
            aside: None,
            listening: Vec::new(),
            closed: Vec::new(),
            clock: Clock::start(),
            tape: Tape::default(),
            connections: 0,
        }
    }

    /// Discards the datagrams that have arrived and were not read.
    pub fn forget(&self) {
        let mut buffer = [0; LONGEST];
        while self.udp.try_recv_from(&mut buffer).is_ok() {}
    }
}

/// The link to a target that queries the port mapper and then connects.
#[derive(Debug)]
pub struct MapperLink {
    mapper: MapperSocket,
    /// A UDP socket on another port of the tester.
    aside: Option<UdpSocket>,
    listening: Vec<(TcpListener, SocketAddr)>,
    /// Ports that are reserved and refuse connections.
    closed: Vec<TcpSocket>,
    clock: Clock,
    tape: Tape,
    connections: u32,
}

/// A datagram or connection that reached the tester.
#[derive(Debug)]
pub(super) enum MapperCall {
    Datagram { to: SocketAddr, from: SocketAddr, octets: Bytes },
    Connection { to: SocketAddr, end: TcpTester },
}

impl MapperLink {
    /// The address of the tester's port mapper, which the target queries.
    #[must_use]
    pub fn mapper_address(&self) -> SocketAddr {
        self.mapper.address
    }

    pub(super) fn forget(&self) {
        self.mapper.forget();
    }

    /// Reserves a new TCP address of the tester, on the host of its port mapper. Connections to it
    /// are accepted if `listens` is set, and refused otherwise.
    pub(super) fn place(&mut self, listens: bool) -> Result<SocketAddr, LinkError> {
        let failed = |source| LinkError::Io { doing: "taking a port", source };
        let at = SocketAddr::new(self.mapper.address.ip(), 0);
        let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
        socket.bind(at).map_err(failed)?;
        let place = socket.local_addr().map_err(failed)?;
        if listens {
            self.listening.push((socket.listen(BACKLOG).map_err(failed)?, place));
        } else {
            self.closed.push(socket);
        }
        Ok(place)
    }

    /// Sends a datagram, from another port of the same host if `aside` is set. Returns the source
    /// address.
    pub(super) async fn answer(&mut self, aside: bool, to: SocketAddr, octets: &[u8]) -> Result<SocketAddr, LinkError> {
        let failed = |source| LinkError::Io { doing: "sending a datagram", source };
        if aside && self.aside.is_none() {
            self.aside = Some(udp_at(SocketAddr::new(self.mapper.address.ip(), 0)).map_err(failed)?);
        }
        let udp = self.aside.as_ref().filter(|_| aside).unwrap_or(&self.mapper.udp);
        match udp.send_to(octets, to).await {
            // An earlier datagram caused an ICMP "port unreachable" message. This one may still
            // arrive.
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(failed(error)),
            _ => udp.local_addr().map_err(failed),
        }
    }

    pub(super) async fn next_call(&mut self, deadline: Instant) -> Result<Option<MapperCall>, LinkError> {
        loop {
            let mut buffer = [0; LONGEST];
            let (mapper, aside, listening) = (&self.mapper, self.aside.as_ref(), &self.listening);
            let next = poll_fn(|cx| {
                let sockets =
                    [Some((&*mapper.udp, mapper.address)), aside.and_then(|udp| Some((udp, udp.local_addr().ok()?)))];
                for (udp, to) in sockets.into_iter().flatten() {
                    let mut read = ReadBuf::new(&mut buffer);
                    match udp.poll_recv_from(cx, &mut read) {
                        Poll::Ready(Ok(from)) => {
                            let octets = Bytes::copy_from_slice(read.filled());
                            return Poll::Ready(Ok(Came::Datagram { to, from, octets }));
                        }
                        // The error reports an ICMP message about an earlier datagram. It does not
                        // affect the next one.
                        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                            return Poll::Ready(Ok(Came::Nothing));
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => {}
                    }
                }
                for (listener, to) in listening {
                    match listener.poll_accept(cx) {
                        Poll::Ready(Ok((stream, from))) => {
                            return Poll::Ready(Ok(Came::Connection { to: *to, stream, from }));
                        }
                        Poll::Ready(Err(error)) if is_of_one_connection(&error) => {
                            return Poll::Ready(Ok(Came::Nothing));
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => {}
                    }
                }
                Poll::Pending
            });
            let failed = |source| LinkError::Io { doing: "waiting for the target", source };
            let came = match timeout_at(self.clock.to_tokio(deadline), next).await {
                Err(_) => return Ok(None),
                Ok(came) => came.map_err(failed)?,
            };
            match came {
                Came::Nothing => {}
                Came::Datagram { to, from, octets } => return Ok(Some(MapperCall::Datagram { to, from, octets })),
                Came::Connection { to, stream, from } => {
                    let number = self.connections;
                    self.connections += 1;
                    let end = TcpTester::new(stream, from, number, &self.tape, self.clock, SEND_TIMEOUT);
                    return Ok(Some(MapperCall::Connection { to, end: end.map_err(failed)? }));
                }
            }
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) async fn pause(&self, until: Instant) {
        sleep_until(self.clock.to_tokio(until)).await;
    }

    pub(super) fn tape(&self) -> &Tape {
        &self.tape
    }
}

enum Came {
    Nothing,
    Datagram { to: SocketAddr, from: SocketAddr, octets: Bytes },
    Connection { to: SocketAddr, stream: tokio::net::TcpStream, from: SocketAddr },
}

fn udp_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let udp = std::net::UdpSocket::bind(address)?;
    udp.set_nonblocking(true)?;
    UdpSocket::from_std(udp)
}
