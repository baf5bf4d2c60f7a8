//! The link over real TCP.

use core::time::Duration;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::time::{timeout, timeout_at};

use super::clock::Clock;
use super::datagram_socket::DatagramSocket;
use super::link_error::LinkError;
use super::tcp_tester::TcpTester;
use super::tester::{Side, TesterConnection};
use super::traffic_log::TrafficLog;
use crate::time::Instant;

/// The default send time-out: a send fails if the target accepts no bytes for this time.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// What fails if the tester has no address, port or socket for a connection.
const OPENING: &str = "opening a TCP connection from the tester's own address";

/// The number of further ports that the tester tries if another program uses a port for TCP.
const MAX_PORTS: u32 = 32;

/// The part that all links over real TCP have in common.
#[derive(Debug)]
pub(super) struct RealLink {
    pub(super) clock: Clock,
    pub(super) traffic: TrafficLog,
    connections: u32,
}

impl RealLink {
    /// Creates this part of a new link. Its clock starts now, and its traffic log is empty.
    pub(super) fn start() -> Self {
        RealLink { clock: Clock::start(), traffic: TrafficLog::default(), connections: 0 }
    }

    /// Returns the number of the next connection.
    pub(super) fn next_number(&mut self) -> u32 {
        let number = self.connections;
        self.connections += 1;
        number
    }

    /// Returns the tester's side of the next connection.
    pub(super) fn connection(
        &mut self,
        stream: TcpStream,
        target: SocketAddr,
        send_timeout: Duration,
    ) -> io::Result<TesterConnection> {
        let number = self.next_number();
        stream.set_nodelay(true)?;
        let addresses = (stream.local_addr()?, target);
        let tester = TcpTester::new(stream, self.clock, send_timeout);
        Ok(TesterConnection::new(Side::Tcp(tester), number, &self.traffic, addresses))
    }

    pub(super) async fn pause(&self, until: Instant) {
        self.clock.sleep_until(Some(until)).await;
    }
}

/// The settings of a [`TcpLink`] or a [`WireLink`](super::WireLink): in both, the tester connects.
#[derive(Debug)]
pub(super) struct TcpSettings {
    /// See [`Link::with_connect_timeout`](super::Link::with_connect_timeout).
    pub(super) connect_timeout: Duration,
    /// See [`Link::with_send_timeout`](super::Link::with_send_timeout).
    pub(super) send_timeout: Duration,
    /// Size in bytes of TCP's receive buffer. `None` means the default.
    pub(super) receive_buffer: Option<u32>,
}

impl Default for TcpSettings {
    fn default() -> Self {
        TcpSettings { connect_timeout: Duration::from_secs(5), send_timeout: SEND_TIMEOUT, receive_buffer: None }
    }
}

/// A target at a TCP address.
#[derive(Debug)]
pub struct TcpLink {
    pub(super) target: SocketAddr,
    pub(super) settings: TcpSettings,
    pub(super) real: RealLink,
    /// Addresses of the target's port mapper.
    mappers: Vec<SocketAddr>,
}

impl TcpLink {
    /// Creates a link to `target`. Its clock starts now.
    #[must_use]
    pub fn new(target: SocketAddr) -> Self {
        TcpLink { target, settings: TcpSettings::default(), real: RealLink::start(), mappers: Vec::new() }
    }

    /// Sets the addresses of the target's port mapper, at most one for each address family.
    #[must_use]
    pub fn with_mappers(mut self, mappers: Vec<SocketAddr>) -> Self {
        self.mappers = mappers;
        self
    }

    pub(super) async fn datagrams(&self, v6: bool) -> Result<DatagramSocket, LinkError> {
        let failed = |source| LinkError::Io { doing: "opening a socket for datagrams", source };
        let found = self.mappers.iter().find(|mapper| mapper.is_ipv6() == v6);
        let target =
            *found.ok_or_else(|| failed(io::Error::other("the target has no port mapper of this IP family")))?;
        let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        // The operating system picks the source address by the route to the target.
        let way = UdpSocket::bind((any, 0)).await.map_err(failed)?;
        way.connect(target).await.map_err(failed)?;
        let own = way.local_addr().map_err(failed)?.ip();
        let (udp, tcp) = bind_both(own).await.map_err(failed)?;
        Ok(DatagramSocket { tester: udp.local_addr().map_err(failed)?, target, udp: Some(udp), _tcp: Some(tcp) })
    }

    pub(super) async fn receive_datagram(
        &self,
        udp: &UdpSocket,
        deadline: Instant,
    ) -> Result<Option<(SocketAddr, Bytes)>, LinkError> {
        let mut buffer = [0; 2048];
        loop {
            match timeout_at(self.real.clock.to_tokio(deadline), udp.recv_from(&mut buffer)).await {
                Err(_) => return Ok(None),
                Ok(Ok((len, from))) => {
                    return Ok(Some((from, Bytes::copy_from_slice(buffer.get(..len).unwrap_or_default()))));
                }
                // An error from an ICMP message has no meaning for the next datagram.
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Ok(Err(source)) => return Err(LinkError::Io { doing: "receiving a datagram", source }),
            }
        }
    }

    pub(super) async fn connect_to(
        &mut self,
        address: SocketAddr,
        from: Option<SocketAddr>,
    ) -> Result<TesterConnection, LinkError> {
        let failed = |source: io::Error| match source.kind() {
            // The tester has no address or port for the connection. The target has not seen it.
            io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => LinkError::Io { doing: OPENING, source },
            _ => LinkError::Connect { address, source },
        };
        let TcpSettings { connect_timeout, send_timeout, receive_buffer } = self.settings;
        let own = |source| LinkError::Io { doing: OPENING, source };
        let connecting = async {
            if from.is_none() && receive_buffer.is_none() {
                return TcpStream::connect(address).await.map_err(failed);
            }
            let socket = reusable_socket(address).map_err(own)?;
            if let Some(octets) = receive_buffer {
                // The window scale depends on the buffer at the time of the SYN.
                socket.set_recv_buffer_size(octets).map_err(own)?;
            }
            if let Some(from) = from {
                socket.bind(from).map_err(own)?;
            }
            socket.connect(address).await.map_err(failed)
        };
        let stream = timeout(connect_timeout, connecting)
            .await
            .map_err(|_| LinkError::ConnectTimeout { address, after: connect_timeout })??;
        self.real.connection(stream, address, send_timeout).map_err(failed)
    }
}

/// Binds a UDP socket to a port that no other program uses for TCP: the tester's next connection
/// comes from the same port. Also returns the TCP socket, which keeps the port.
async fn bind_both(ip: IpAddr) -> io::Result<(UdpSocket, TcpSocket)> {
    let mut attempt = 0;
    loop {
        let udp = UdpSocket::bind((ip, 0)).await?;
        match bound_socket(udp.local_addr()?) {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempt < MAX_PORTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Creates a TCP socket of the IP family of `address`. The socket can be bound to an address whose
/// previous connections are still in TIME_WAIT.
pub(super) fn reusable_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

/// Creates a [reusable socket](reusable_socket) that is bound to `address`.
pub(super) fn bound_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = reusable_socket(address)?;
    socket.bind(address)?;
    Ok(socket)
}
