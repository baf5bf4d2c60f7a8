//! The tester's access to a target: the tester connects, sends any bytes, and receives the answers.
//!
//! A [`Link`] reaches one target: over real TCP, or in this process over the virtual link. Real TCP
//! is the TCP of the operating system, or [the tester's own](WireLink). All kinds of link have the
//! same functions. This module knows no protocol: a suite uses `weft_core::wire` to build the bytes
//! that it sends, and to parse the answers. The link's [`TrafficLog`] records all traffic.
//!
//! ```
//! use std::time::Duration;
//!
//! use weft_peer::driver::{Link, LinkError, Received, VirtualLink};
//! use weft_peer::Settings;
//!
//! # async fn case() -> Result<(), LinkError> {
//! // Or: Link::Tcp(TcpLink::new("192.0.2.1:7174".parse()?))
//! let mut link = Link::Virtual(VirtualLink::echo(Settings::default()));
//! let mut connection = link.connect().await?;
//! connection.send(b"MPA ID Req Frame\x40\x01\x00\x00").await?;
//! let deadline = connection.now() + Duration::from_secs(5);
//! match connection.receive(deadline).await? {
//!     Received::Octets(octets) => assert_eq!(&octets[..], b"MPA ID Rep Frame\x40\x01\x00\x00"),
//!     Received::Fin | Received::Reset | Received::TimedOut => panic!("a Reply was due"),
//! }
//! connection.finish().await?; // our FIN; reset() aborts instead
//! let deadline = connection.now() + Duration::from_secs(5);
//! assert_eq!(connection.receive(deadline).await?, Received::Fin);
//! assert_eq!(link.traffic().events().len(), 5); // connected, Request, Reply, two FINs
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(case()).unwrap();
//! ```
//!
//! Each link has its own clock, so compare only [`Instant`]s of the same link. A TCP link uses the
//! machine's clock. On the virtual link, time passes only while the tester waits
//! ([`TesterConnection::receive`], [`Link::pause`], connecting). During a wait, the time jumps.
//! Several connections can be open at once. Dropping a connection sends FIN, or RST if some bytes
//! from the target were not read. When a process ends, the operating system closes its connections
//! in the same way.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use weft_core::wire::portmap::UDP_PORT;

use super::accept::AcceptLink;
use super::call::Call;
use super::datagram_socket::DatagramSocket;
use super::link_error::LinkError;
use super::mapper_link::MapperLink;
use super::tcp::{TcpLink, TcpSettings};
use super::tester::TesterConnection;
use super::traffic_log::{Direction, EventContent, TrafficLog};
use super::virtual_link::{VirtualLink, tester_mapper};
use super::wire::WireLink;
use crate::time::Instant;

/// The tester's access to one target. See the [module](self).
#[derive(Debug)]
pub enum Link {
    /// The tester connects over TCP.
    Tcp(TcpLink),
    /// The target connects to the tester over TCP.
    Accept(AcceptLink),
    /// The target queries the tester's port mapper over UDP, then connects over TCP to the address
    /// in the answer.
    Mapper(MapperLink),
    /// The target runs in this process, with a virtual clock.
    Virtual(VirtualLink),
    /// The tester connects over its own TCP on an Ethernet interface.
    Wire(WireLink),
}

impl Link {
    /// Returns the settings of a link over which the tester connects by real TCP.
    fn tcp_settings(&mut self) -> Option<&mut TcpSettings> {
        match self {
            Link::Tcp(link) => Some(&mut link.settings),
            Link::Wire(link) => Some(&mut link.settings),
            Link::Accept(_) | Link::Mapper(_) | Link::Virtual(_) => None,
        }
    }

    /// Sets the time after which a connection attempt over real TCP fails. The default is 5 s.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        if let Some(settings) = self.tcp_settings() {
            settings.connect_timeout = timeout;
        }
        self
    }

    /// Sets the time after which a send fails if the target accepts no bytes. The default is 10 s.
    /// The setting has effect only if the tester connects over real TCP.
    #[must_use]
    pub fn with_send_timeout(mut self, timeout: Duration) -> Self {
        if let Some(settings) = self.tcp_settings() {
            settings.send_timeout = timeout;
        }
        self
    }

    /// Opens a new TCP connection to the target. No MPA frame is sent.
    ///
    /// # Errors
    /// The target refuses the connection, does not answer within the link's connect time-out, or is
    /// an initiator.
    pub async fn connect(&mut self) -> Result<TesterConnection, LinkError> {
        let connection = match self {
            Link::Tcp(link) => link.connect_to(link.target, None).await?,
            Link::Virtual(link) => link.open(false).await?,
            Link::Wire(link) => link.connect_to(link.target, None).await?,
            Link::Accept(_) | Link::Mapper(_) => return Err(LinkError::Initiator),
        };
        self.record(&connection);
        Ok(connection)
    }

    /// Acts like [`connect`](Self::connect), but connects to an address that the target's port
    /// mapper returned. Over TCP, `from` sets the tester's address. The virtual link ignores `from`
    /// and uses [`next_address`](Self::next_address).
    ///
    /// # Errors
    /// The same errors as [`connect`](Self::connect).
    pub async fn connect_to(
        &mut self,
        address: SocketAddr,
        from: Option<SocketAddr>,
    ) -> Result<TesterConnection, LinkError> {
        let connection = match self {
            Link::Tcp(link) => link.connect_to(address, from).await?,
            Link::Virtual(link) => link.connect_to(address).await?,
            Link::Wire(link) => link.connect_to(address, from).await?,
            Link::Accept(_) | Link::Mapper(_) => return Err(LinkError::Initiator),
        };
        self.record(&connection);
        Ok(connection)
    }

    /// Sets the size in bytes of TCP's receive buffer for the connections that the tester opens
    /// after this call. A small buffer makes TCP's window small, so the target can send only a few
    /// bytes before the tester reads. The operating system may use a larger buffer. The setting has
    /// no effect on connections that the target opens.
    pub fn set_receive_buffer(&mut self, octets: u32) {
        match self {
            Link::Tcp(link) => link.settings.receive_buffer = Some(octets),
            Link::Virtual(link) => link.set_receive_buffer(octets),
            Link::Wire(link) => link.settings.receive_buffer = Some(octets),
            Link::Accept(_) | Link::Mapper(_) => {}
        }
    }

    /// Sets the TCP sequence number of the tester's first byte, for the connections that are opened
    /// after this call. With a number near 2^32, the sequence number wraps to 0 after a few bytes.
    ///
    /// # Errors
    /// [`LinkError::NoSegments`]: the link uses the TCP of the operating system.
    pub fn set_first_sequence(&mut self, number: u32) -> Result<(), LinkError> {
        match self {
            Link::Virtual(link) => link.first_sequence = Some(number),
            // The SYN has the number before the first byte.
            Link::Wire(link) => link.first_sequence = Some(number.wrapping_sub(1)),
            Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_) => return Err(LinkError::NoSegments),
        }
        Ok(())
    }

    fn record(&self, connection: &TesterConnection) {
        let target_opens = matches!(self, Link::Virtual(link) if link.target_opens);
        connection.record_opened(if target_opens { Direction::FromTarget } else { Direction::ToTarget });
    }

    fn record_datagram(&self, direction: Direction, tester: SocketAddr, target: SocketAddr, octets: Bytes) {
        let content = EventContent::Datagram { tester, target, octets };
        self.traffic().record(self.now(), 0, direction, content);
    }

    /// Opens a UDP socket to the target's port mapper, for IPv6 if `v6` is set, otherwise for IPv4.
    ///
    /// # Errors
    /// The target has no port mapper of that address family, the socket cannot be opened, the link
    /// uses the tester's own TCP, or the target is an initiator.
    pub async fn datagrams(&mut self, v6: bool) -> Result<DatagramSocket, LinkError> {
        match self {
            Link::Tcp(link) => link.datagrams(v6).await,
            Link::Virtual(link) => {
                let tester = link.datagram_address(v6);
                Ok(DatagramSocket { tester, target: VirtualLink::mapper(v6, false), udp: None, _tcp: None })
            }
            Link::Wire(_) => {
                let source = io::Error::other("the tester's own TCP sends no UDP");
                Err(LinkError::Io { doing: "opening a socket for datagrams", source })
            }
            Link::Accept(_) | Link::Mapper(_) => Err(LinkError::Initiator),
        }
    }

    /// Sends a datagram to the target's port mapper.
    ///
    /// # Errors
    /// The operating system reported an error.
    pub async fn send_datagram(&mut self, socket: &DatagramSocket, octets: &[u8]) -> Result<(), LinkError> {
        let (target, sent) = (socket.named(socket.target), Bytes::copy_from_slice(octets));
        self.record_datagram(Direction::ToTarget, socket.tester, target, sent);
        match (&mut *self, &socket.udp) {
            (Link::Virtual(link), _) => link.send_datagram(socket.tester, octets),
            (Link::Tcp(_), Some(udp)) => {
                let failed = |source| LinkError::Io { doing: "sending a datagram", source };
                udp.send_to(octets, socket.target).await.map_err(failed)?;
            }
            (Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_) | Link::Wire(_), _) => {}
        }
        Ok(())
    }

    /// Waits until `deadline` for a datagram to this socket. Returns the sender's address and the
    /// payload, or `None` if no datagram arrived.
    ///
    /// # Errors
    /// The operating system reported an error.
    pub async fn receive_datagram(
        &mut self,
        socket: &DatagramSocket,
        deadline: Instant,
    ) -> Result<Option<(SocketAddr, Bytes)>, LinkError> {
        let received = match (&mut *self, &socket.udp) {
            (Link::Virtual(link), _) => link.receive_datagram(socket.tester, deadline).await,
            (Link::Tcp(link), Some(udp)) => link.receive_datagram(udp, deadline).await?,
            (Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_) | Link::Wire(_), _) => None,
        };
        if let Some((from, octets)) = &received {
            self.record_datagram(Direction::FromTarget, socket.tester, socket.named(*from), octets.clone());
        }
        Ok(received)
    }

    /// Returns the address that the tester's next connection will come from. Returns `None` if the
    /// operating system picks the address later.
    #[must_use]
    pub fn next_address(&self) -> Option<SocketAddr> {
        match self {
            Link::Virtual(link) => Some(link.next_address()),
            Link::Wire(link) => Some(link.next_address()),
            Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_) => None,
        }
    }

    /// Waits for the next TCP connection from a target that opens connections. The tester has not
    /// yet received an MPA frame on the returned connection. Returns `None` if no connection
    /// arrived before `deadline`. On the virtual link this call makes the target connect.
    ///
    /// # Errors
    /// The operating system reported an error, or the target is a responder.
    pub async fn accept(&mut self, deadline: Instant) -> Result<Option<TesterConnection>, LinkError> {
        let connection = match self {
            Link::Tcp(link) => return Err(LinkError::Responder { address: link.target }),
            Link::Wire(link) => return Err(LinkError::Responder { address: link.target }),
            Link::Virtual(link) => link.open(true).await.map(Some)?,
            Link::Accept(link) => link.accept(deadline).await?,
            // This target connects to the address that the port mapper announced.
            // [`Link::next_call`] returns the connection.
            Link::Mapper(link) => {
                link.real.pause(deadline).await;
                None
            }
        };
        connection.iter().for_each(|connection| connection.record_opened(Direction::FromTarget));
        Ok(connection)
    }

    /// Returns the address of the tester's port mapper, which the target queries. Only the virtual
    /// link has both an IPv4 and an IPv6 address: `v6` selects one.
    #[must_use]
    pub fn mapper_address(&self, v6: bool) -> SocketAddr {
        if self.is_virtual() { tester_mapper(v6, false) } else { self.target() }
    }

    /// Reserves a new TCP address of the tester, to announce in an answer to a target that queries
    /// a port mapper. If `listens` is set, connections to the address arrive as
    /// [calls](Self::next_call). Otherwise connections to the address are refused. On the virtual
    /// link, `v6` selects an IPv6 address, and `other` selects an address of another host.
    ///
    /// # Errors
    /// No port is free, or the target does not query a port mapper.
    pub fn reserve_address(&mut self, v6: bool, other: bool, listens: bool) -> Result<SocketAddr, LinkError> {
        match self {
            Link::Mapper(link) => link.reserve_address(listens),
            Link::Virtual(link) => {
                let address = VirtualLink::TARGET;
                link.reserve_address(v6, other, listens).ok_or(LinkError::Responder { address })
            }
            Link::Tcp(_) | Link::Accept(_) | Link::Wire(_) => Err(LinkError::Responder { address: self.target() }),
        }
    }

    /// Makes the virtual target query the port mapper for `service` and then connect. A real target
    /// starts by itself: in that case this call only discards the datagrams that the tester's port
    /// mapper has received so far.
    ///
    /// # Errors
    /// The virtual target's port mapper client rejects the query.
    pub fn query(&mut self, service: SocketAddr) -> Result<(), LinkError> {
        match self {
            Link::Virtual(link) => {
                let failed =
                    |error| LinkError::Io { doing: "querying the port mapper", source: io::Error::other(error) };
                link.query(service).map_err(failed)
            }
            Link::Mapper(link) => {
                link.mapper.forget();
                Ok(())
            }
            Link::Tcp(_) | Link::Accept(_) | Link::Wire(_) => Ok(()),
        }
    }

    /// Sends a datagram from the tester's port mapper, or from another port of the same host if
    /// `other_port` is set.
    ///
    /// # Errors
    /// The operating system reported an error, or the target does not query a port mapper.
    pub async fn answer(&mut self, other_port: bool, to: SocketAddr, octets: &[u8]) -> Result<(), LinkError> {
        let from = match self {
            Link::Virtual(link) => {
                let from = tester_mapper(to.is_ipv6(), other_port);
                link.answer(from, to, octets);
                from
            }
            Link::Mapper(link) => link.answer(other_port, to, octets).await?,
            Link::Tcp(_) | Link::Accept(_) | Link::Wire(_) => {
                return Err(LinkError::Responder { address: self.target() });
            }
        };
        self.record_datagram(Direction::ToTarget, self.named(from), to, Bytes::copy_from_slice(octets));
        Ok(())
    }

    /// Waits until `deadline` for the next datagram or connection of a target that queries a port
    /// mapper. Returns `None` if nothing arrived.
    ///
    /// # Errors
    /// The operating system reported an error, or the target does not query a port mapper.
    pub async fn next_call(&mut self, deadline: Instant) -> Result<Option<Call>, LinkError> {
        let call = match self {
            Link::Virtual(link) => link.next_call(deadline).await,
            Link::Mapper(link) => link.next_call(deadline).await?,
            Link::Tcp(_) | Link::Accept(_) | Link::Wire(_) => {
                return Err(LinkError::Responder { address: self.target() });
            }
        };
        match &call {
            Some(Call::Datagram { to, from, octets }) => {
                self.record_datagram(Direction::FromTarget, self.named(*to), *from, octets.clone());
            }
            Some(Call::Connection { connection, .. }) => connection.record_opened(Direction::FromTarget),
            None => {}
        }
        Ok(call)
    }

    /// Returns the address that the traffic log shows for `address`. For the tester's port mapper,
    /// the log shows the port number of the specification instead of the real port number. Readers
    /// of the log recognise a port mapper by the port number of the specification.
    fn named(&self, address: SocketAddr) -> SocketAddr {
        let is_mapper = address == self.mapper_address(address.is_ipv6());
        SocketAddr::new(address.ip(), if is_mapper { UDP_PORT } else { address.port() })
    }

    /// Waits until the target connects to `port` of the tester, to resume a suspended SDP
    /// connection. Returns `None` if no connection arrived before `deadline`. Only the virtual link
    /// supports this.
    ///
    /// # Errors
    /// The link is not a virtual link.
    pub async fn await_reconnection(
        &mut self,
        port: u16,
        deadline: Instant,
    ) -> Result<Option<TesterConnection>, LinkError> {
        let Link::Virtual(link) = self else { return Err(LinkError::Responder { address: self.target() }) };
        let connection = link.await_reconnection(port, deadline).await;
        connection.iter().for_each(|connection| connection.record_opened(Direction::FromTarget));
        Ok(connection)
    }

    /// Returns the time on this link's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        match self {
            Link::Tcp(link) => link.real.clock.now(),
            Link::Accept(link) => link.real.clock.now(),
            Link::Mapper(link) => link.real.clock.now(),
            Link::Virtual(link) => link.now(),
            Link::Wire(link) => link.real.clock.now(),
        }
    }

    /// Waits until the time `until`. During this wait the target continues to run.
    pub async fn pause(&self, until: Instant) {
        match self {
            Link::Tcp(link) => link.real.pause(until).await,
            Link::Accept(link) => link.real.pause(until).await,
            Link::Mapper(link) => link.real.pause(until).await,
            Link::Virtual(link) => link.pause(until).await,
            Link::Wire(link) => link.real.pause(until).await,
        }
    }

    /// Returns the address that the connecting side connects to. This is the target's address if
    /// the tester connects, and the tester's address if the target connects. If the target queries
    /// a port mapper, this is the address of the tester's port mapper. On the virtual link this is
    /// a synthetic address.
    #[must_use]
    pub fn target(&self) -> SocketAddr {
        match self {
            Link::Tcp(link) => link.target,
            Link::Accept(link) => link.local_addr(),
            Link::Mapper(link) => link.mapper_address(),
            Link::Virtual(_) => VirtualLink::TARGET,
            Link::Wire(link) => link.target,
        }
    }

    /// Returns the record of all traffic on this link.
    #[must_use]
    pub fn traffic(&self) -> &TrafficLog {
        match self {
            Link::Tcp(link) => &link.real.traffic,
            Link::Accept(link) => &link.real.traffic,
            Link::Mapper(link) => &link.real.traffic,
            Link::Virtual(link) => &link.traffic,
            Link::Wire(link) => &link.real.traffic,
        }
    }

    /// Returns whether the link's time is virtual, so that waiting takes no real time.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self, Link::Virtual(_))
    }
}
