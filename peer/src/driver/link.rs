//! The tester's hands on a target: connect, send any octets, see what comes back.
//!
//! A [`Link`] reaches one target, over real TCP or in process over the virtual link; code that uses
//! it need not know which. Nothing here knows a protocol: a suite builds its octets with
//! `weft_core::wire` and reads the answer the same way. Everything that passes is on the link's
//! [`Tape`].
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
//! assert_eq!(link.tape().events().len(), 5); // connected, Request, Reply, two FINs
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(case()).unwrap();
//! ```
//!
//! Time is the link's: compare [`Instant`]s of one link only. On the virtual link time stops except
//! while somebody waits ([`TesterConnection::receive`], [`Link::pause`], connecting), and then
//! jumps; on TCP it is the machine's. Several connections may be open at once. Dropping one closes
//! it as a process that ends would: with FIN, or with a reset when octets of the target were not
//! read.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use weft_core::wire::portmap::UDP_PORT;

use super::accept::AcceptLink;
use super::datagram_socket::DatagramSocket;
use super::link_error::LinkError;
use super::mapper_link::{MapperCall, MapperLink};
use super::tape::{Direction, Tape, What};
use super::tcp::TcpLink;
use super::tester::TesterConnection;
use super::virtual_link::{VirtualCall, VirtualLink};
use crate::time::Instant;

/// A way to one target. See the [module](self).
#[derive(Debug)]
pub enum Link {
    /// Real TCP.
    Tcp(TcpLink),
    /// Real TCP, and the target connects.
    Accept(AcceptLink),
    /// Real UDP and TCP, and the target connects to where its port mapper sends it.
    Mapper(MapperLink),
    /// In process, with a virtual clock.
    Virtual(VirtualLink),
}

/// A message or connection of a target that queries a port mapper.
#[derive(Debug)]
pub enum Call {
    /// A datagram.
    Datagram {
        /// The socket of the tester's that it came to.
        to: SocketAddr,
        /// The target's.
        from: SocketAddr,
        /// What it carries.
        octets: Bytes,
    },
    /// A connection.
    Connection {
        /// The place that it was opened to; see [`Link::place`].
        to: SocketAddr,
        /// It.
        connection: Box<TesterConnection>,
    },
}

impl Link {
    /// A new connection to the target, TCP only: no MPA frame is sent.
    ///
    /// # Errors
    /// The target refuses, or does not answer within the link's connect time-out; it is an
    /// initiator.
    pub async fn connect(&mut self) -> Result<TesterConnection, LinkError> {
        let connection = match self {
            Link::Tcp(link) => link.connect().await.map(TesterConnection::from_tcp)?,
            Link::Virtual(link) => link.connect().await.map(TesterConnection::from_virtual)?,
            Link::Accept(_) | Link::Mapper(_) => return Err(LinkError::Initiator),
        };
        self.record(&connection);
        Ok(connection)
    }

    /// As [`connect`](Self::connect), to another address of the target: one that its port mapper
    /// gave, and over TCP from a certain address of the tester's, if any. A virtual link's
    /// connections come from [`next_address`](Self::next_address).
    ///
    /// # Errors
    /// As there.
    pub async fn connect_to(
        &mut self,
        address: SocketAddr,
        from: Option<SocketAddr>,
    ) -> Result<TesterConnection, LinkError> {
        let connection = match self {
            Link::Tcp(link) => link.connect_to(address, from).await.map(TesterConnection::from_tcp)?,
            Link::Virtual(link) => link.connect_to(address).await.map(TesterConnection::from_virtual)?,
            Link::Accept(_) | Link::Mapper(_) => return Err(LinkError::Initiator),
        };
        self.record(&connection);
        Ok(connection)
    }

    fn record(&self, connection: &TesterConnection) {
        let (tester, target) = connection.addresses();
        let what = What::Connected { tester, target };
        let target_opens = matches!(self, Link::Virtual(link) if link.target_opens);
        connection.record(if target_opens { Direction::FromTarget } else { Direction::ToTarget }, what);
    }

    /// A socket of the tester's for datagrams to the target's port mapper, of one family.
    ///
    /// # Errors
    /// The target has no port mapper of that family, or there is no such socket.
    pub async fn datagrams(&mut self, v6: bool) -> Result<DatagramSocket, LinkError> {
        match self {
            Link::Tcp(link) => link.datagrams(v6).await,
            Link::Virtual(link) => {
                Ok(DatagramSocket::in_process(link.datagram_address(v6), VirtualLink::mapper(v6, false)))
            }
            Link::Accept(_) | Link::Mapper(_) => Err(LinkError::Initiator),
        }
    }

    /// Sends a datagram to the port mapper.
    ///
    /// # Errors
    /// The machine failed.
    pub async fn send_datagram(&mut self, socket: &DatagramSocket, octets: &[u8]) -> Result<(), LinkError> {
        let sent = Bytes::copy_from_slice(octets);
        let what = What::Datagram { tester: socket.tester, target: socket.named(socket.target), octets: sent };
        self.tape().record(self.now(), 0, Direction::ToTarget, what);
        match (&mut *self, &socket.udp) {
            (Link::Virtual(link), _) => link.send_datagram(socket.tester, octets),
            (Link::Tcp(_), Some(udp)) => {
                let failed = |source| LinkError::Io { doing: "sending a datagram", source };
                udp.send_to(octets, socket.target).await.map_err(failed)?;
            }
            (Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_), _) => {}
        }
        Ok(())
    }

    /// Waits for a datagram to this socket, until `deadline` at most; gives who sent it, too.
    ///
    /// # Errors
    /// The machine failed.
    pub async fn receive_datagram(
        &mut self,
        socket: &DatagramSocket,
        deadline: Instant,
    ) -> Result<Option<(SocketAddr, Bytes)>, LinkError> {
        let received = match (&mut *self, &socket.udp) {
            (Link::Virtual(link), _) => link.receive_datagram(socket.tester, deadline).await,
            (Link::Tcp(link), Some(udp)) => link.receive_datagram(udp, deadline).await?,
            (Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_), _) => None,
        };
        if let Some((from, octets)) = &received {
            let what = What::Datagram { tester: socket.tester, target: socket.named(*from), octets: octets.clone() };
            self.tape().record(self.now(), 0, Direction::FromTarget, what);
        }
        Ok(received)
    }

    /// The address that the tester's next connection to `target` comes from, where it is known
    /// beforehand.
    #[must_use]
    pub fn next_address(&self) -> Option<SocketAddr> {
        match self {
            Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_) => None,
            Link::Virtual(link) => Some(link.next_address()),
        }
    }

    /// The next connection of a target that connects itself, TCP only: no MPA frame was received.
    /// `None` when none came until `deadline`. On the virtual link the target is started by it.
    ///
    /// # Errors
    /// The machine failed; the target is a responder.
    pub async fn accept(&mut self, deadline: Instant) -> Result<Option<TesterConnection>, LinkError> {
        let connection = match self {
            Link::Tcp(link) => return Err(LinkError::Responder { address: link.target() }),
            Link::Virtual(link) => link.accept().await.map(TesterConnection::from_virtual).map(Some)?,
            Link::Accept(link) => link.accept(deadline).await?.map(TesterConnection::from_tcp),
            // It connects to the announced address: [`Link::next_call`].
            Link::Mapper(link) => {
                link.pause(deadline).await;
                None
            }
        };
        if let Some(connection) = &connection {
            let (tester, target) = connection.addresses();
            let what = What::Connected { tester, target };
            connection.record(Direction::FromTarget, what);
        }
        Ok(connection)
    }

    /// The address of the port mapper for a target that uses one; of IPv6 if `v6` is set and the
    /// link has both.
    #[must_use]
    pub fn mapper_address(&self, v6: bool) -> SocketAddr {
        match self {
            Link::Virtual(_) => VirtualLink::tester_mapper(v6, false),
            other => other.target(),
        }
    }

    /// A new TCP address of the tester's, for the answer to a target that queries a port mapper:
    /// connections to it come as [calls](Self::next_call), or are refused unless it `listens`. On
    /// the virtual link of this family, and of another host if `other` is set.
    ///
    /// # Errors
    /// No port is free; the target does not ask.
    pub fn place(&mut self, v6: bool, other: bool, listens: bool) -> Result<SocketAddr, LinkError> {
        match self {
            Link::Mapper(link) => link.place(listens),
            Link::Virtual(link) => {
                let address = VirtualLink::TARGET;
                link.place(v6, other, listens).ok_or(LinkError::Responder { address })
            }
            Link::Tcp(_) | Link::Accept(_) => Err(LinkError::Responder { address: self.target() }),
        }
    }

    /// Has the virtual target request `service` and connect; other targets are not started by the
    /// link. Earlier events are dropped.
    ///
    /// # Errors
    /// Its PM Client does not ask that.
    pub fn ask(&mut self, service: SocketAddr) -> Result<(), LinkError> {
        match self {
            Link::Virtual(link) => {
                let failed = |error| LinkError::Io { doing: "asking", source: io::Error::other(error) };
                link.ask(service).map_err(failed)
            }
            Link::Mapper(link) => {
                link.forget();
                Ok(())
            }
            Link::Tcp(_) | Link::Accept(_) => Ok(()),
        }
    }

    /// Sends a datagram of the tester's port mapper, from another port of it when `aside`.
    ///
    /// # Errors
    /// The machine failed.
    pub async fn answer(&mut self, aside: bool, to: SocketAddr, octets: &[u8]) -> Result<(), LinkError> {
        let from = match self {
            Link::Virtual(link) => {
                let from = VirtualLink::tester_mapper(to.is_ipv6(), aside);
                link.answer(from, to, octets);
                from
            }
            Link::Mapper(link) => link.answer(aside, to, octets).await?,
            Link::Tcp(_) | Link::Accept(_) => return Err(LinkError::Responder { address: self.target() }),
        };
        let what = What::Datagram { tester: self.named(from), target: to, octets: Bytes::copy_from_slice(octets) };
        self.tape().record(self.now(), 0, Direction::ToTarget, what);
        Ok(())
    }

    /// The next event of a target that sends requests, until `deadline` at most.
    ///
    /// # Errors
    /// The machine failed.
    pub async fn next_call(&mut self, deadline: Instant) -> Result<Option<Call>, LinkError> {
        let call = match self {
            Link::Virtual(link) => match link.next_call(deadline).await {
                Some(VirtualCall::Datagram { to, from, octets }) => Call::Datagram { to, from, octets },
                Some(VirtualCall::Connection { number, from, to }) => {
                    let connection = TesterConnection::from_virtual(link.taken(number, from, to));
                    Call::Connection { to, connection: Box::new(connection) }
                }
                None => return Ok(None),
            },
            Link::Mapper(link) => match link.next_call(deadline).await? {
                Some(MapperCall::Datagram { to, from, octets }) => Call::Datagram { to, from, octets },
                Some(MapperCall::Connection { to, end }) => {
                    Call::Connection { to, connection: Box::new(TesterConnection::from_tcp(end)) }
                }
                None => return Ok(None),
            },
            Link::Tcp(_) | Link::Accept(_) => return Err(LinkError::Responder { address: self.target() }),
        };
        match &call {
            Call::Datagram { to, from, octets } => {
                let what = What::Datagram { tester: self.named(*to), target: *from, octets: octets.clone() };
                self.tape().record(self.now(), 0, Direction::FromTarget, what);
            }
            Call::Connection { connection, .. } => {
                let (tester, target) = connection.addresses();
                let what = What::Connected { tester, target };
                connection.record(Direction::FromTarget, what);
            }
        }
        Ok(Some(call))
    }

    /// Whatever port the tester's port mapper has, the record names that of the specification, by
    /// which readers know it.
    fn named(&self, address: SocketAddr) -> SocketAddr {
        let is_mapper = address == self.mapper_address(address.is_ipv6());
        SocketAddr::new(address.ip(), if is_mapper { UDP_PORT } else { address.port() })
    }

    /// The connection by which the target resumes one that was suspended, to this port of the
    /// tester's; TCP only. `None` when none came until `deadline`. On the virtual link alone.
    ///
    /// # Errors
    /// The link is another one.
    pub async fn await_reconnection(
        &mut self,
        port: u16,
        deadline: Instant,
    ) -> Result<Option<TesterConnection>, LinkError> {
        let connection = match self {
            Link::Virtual(link) => link.await_reconnection(port, deadline).await.map(TesterConnection::from_virtual),
            Link::Tcp(_) | Link::Accept(_) | Link::Mapper(_) => {
                return Err(LinkError::Responder { address: self.target() });
            }
        };
        if let Some(connection) = &connection {
            let (tester, target) = connection.addresses();
            let what = What::Connected { tester, target };
            connection.record(Direction::FromTarget, what);
        }
        Ok(connection)
    }

    /// The time on this link's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        match self {
            Link::Tcp(link) => link.now(),
            Link::Accept(link) => link.now(),
            Link::Mapper(link) => link.now(),
            Link::Virtual(link) => link.now(),
        }
    }

    /// Waits until `until`; the target goes on meanwhile.
    pub async fn pause(&self, until: Instant) {
        match self {
            Link::Tcp(link) => link.pause(until).await,
            Link::Accept(link) => link.pause(until).await,
            Link::Mapper(link) => link.pause(until).await,
            Link::Virtual(link) => link.pause(until).await,
        }
    }

    /// The address that is connected to: the target's, or the tester's where the target connects; a
    /// made-up one on the virtual link.
    #[must_use]
    pub fn target(&self) -> SocketAddr {
        match self {
            Link::Tcp(link) => link.target(),
            Link::Accept(link) => link.local_addr(),
            Link::Mapper(link) => link.mapper_address(),
            Link::Virtual(_) => VirtualLink::TARGET,
        }
    }

    /// All that passed on this link's connections.
    #[must_use]
    pub fn tape(&self) -> &Tape {
        match self {
            Link::Tcp(link) => link.tape(),
            Link::Accept(link) => link.tape(),
            Link::Mapper(link) => link.tape(),
            Link::Virtual(link) => link.tape(),
        }
    }

    /// Time on this link is virtual: waiting costs nothing.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self, Link::Virtual(_))
    }
}
