//! SDP sockets on a [`Device`]: [`SdpListener`] and [`SdpStream`], whose octets are read and
//! written as TCP's are.
//!
//! Each connection has a Queue Pair, and a task that joins it with its
//! [`Connection`](crate::sdp::Connection) (`engine`), on memory of the RNIC (`area`). Written data
//! (`user`) is copied once, into memory that Sends, Writes and SrcAvails use (`outgoing`, `queue`).
//! A read copies data once, out of receives that are posted ahead so that every mechanism finds one
//! (`posted`, `ahead`), or out of the Private Buffers that they took over (`arrived`). Unused
//! memory is kept as long as the connection transfers data (`spare`). `api` has the other calls of
//! a socket, `failover` moves it to another listener; `relay` joins one with a TCP connection,
//! whose urgent bytes `urgent` reads.
//!
//! Not supported: receives in the user's own memory. Receives are posted ahead of reads, in memory
//! of the stream. MSG_WAITALL ([`SdpStream::receive_all`]) is therefore not the machine's
//! `wait_all` (of [`Connection::receive`](crate::sdp::Connection::receive)): it fills the buffer as
//! bytes arrive. No buffer that must be filled completely is ever advertised, as section 9.3
//! requires.

mod ahead;
mod api;
mod area;
mod arrived;
mod ends;
mod engine;
mod failover;
mod outgoing;
mod posted;
mod queue;
mod relay;
mod spare;
mod statistics;
mod stream;
mod urgent;
mod user;

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

pub use relay::{End, Relayed, Side, relay};
pub use statistics::{HalfStatistics, Statistics};
pub use stream::SdpStream;

use super::device::Device;
use super::stream::Opener;
use crate::sdp::{Refusal, Role, Settings, Violation};
use crate::verbs::{CqError, PostError, QpError};

/// How sockets are made.
#[derive(Debug, Clone, Copy)]
pub struct SdpSettings {
    /// SDP, and below it MPA.
    pub sdp: Settings,
    /// TCP has to be connected within this time. Default 10 s.
    pub connect_timeout: Duration,
    /// Octets that may be written and not be out yet (SO_SNDBUF). Default 1 MiB.
    pub send_buffer: usize,
    /// Octets of a receive that is posted ahead. Default 64 KiB.
    pub receive: usize,
    /// Receives that are posted ahead, at least 1; with `receive` they make SO_RCVBUF. Default 4.
    pub receives: usize,
    /// TCP's own keep-alive probes the peer of a connection on which nothing arrives, first after
    /// this time, at least 1 s (SO_KEEPALIVE; section 14.3). Default none: no probes.
    pub keep_alive: Option<Duration>,
    /// A listener on IPv6 accepts no IPv4 (IPV6_V6ONLY). Default false: `[::]` accepts both, unless
    /// the host is configured otherwise.
    pub only_v6: bool,
    /// Out-Of-Band octets stay in the stream from the first one on (SO_OOBINLINE). Default false.
    pub oob_inline: bool,
    /// Where this side connects from (bind(2)); port 0 is a free one. Default none: the host
    /// chooses.
    pub source: Option<SocketAddr>,
}

impl Default for SdpSettings {
    fn default() -> Self {
        SdpSettings {
            sdp: Settings::default(),
            connect_timeout: Duration::from_secs(10),
            send_buffer: 1 << 20,
            receive: 1 << 16,
            receives: 4,
            keep_alive: None,
            only_v6: false,
            oob_inline: false,
            source: None,
        }
    }
}

impl SdpSettings {
    /// Turns TCP's keep-alive on, where it is wanted.
    fn dress(&self, tcp: &TcpStream) -> io::Result<()> {
        match self.keep_alive {
            Some(idle) => SockRef::from(tcp).set_tcp_keepalive(&TcpKeepalive::new().with_time(idle)),
            None => Ok(()),
        }
    }
}

/// Why there is no connection, or none any more.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SdpError {
    /// TCP, by its words.
    #[error("{1}")]
    Io(io::ErrorKind, String),
    /// The RNIC has no room for a connection.
    #[error("the RNIC has no room for a connection: {0}")]
    Rnic(String),
    /// The peer's start-up.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection was reset during start-up.
    #[error("closed during start-up")]
    Closed,
    /// The peer broke a rule that makes going on impossible.
    #[error("the peer broke a rule: {0}")]
    Violation(#[from] Violation),
}

impl From<io::Error> for SdpError {
    fn from(error: io::Error) -> Self {
        SdpError::Io(error.kind(), error.to_string())
    }
}

macro_rules! rnic_errors {
    ($($error:ty),+) => {
        $(impl From<$error> for SdpError {
            fn from(error: $error) -> Self {
                SdpError::Rnic(error.to_string())
            }
        })+
    };
}

rnic_errors!(crate::memory::MemoryError, crate::memory::BufferError, CqError, QpError, PostError);

impl SdpStream {
    /// Connects to an SDP listener.
    ///
    /// # Errors
    /// See [`SdpError`].
    pub async fn connect(device: &Device, address: SocketAddr, settings: SdpSettings) -> Result<Self, SdpError> {
        let connecting = async {
            match settings.source {
                Some(source) => failover::connect_from(source, address).await,
                None => failover::connect(None, address).await,
            }
        };
        let timed_out = |_| SdpError::Io(io::ErrorKind::TimedOut, "TCP was not connected in time".to_owned());
        let tcp = tokio::time::timeout(settings.connect_timeout, connecting).await.map_err(timed_out)??;
        SdpStream::over(device, tcp, settings).await
    }

    /// Sets SDP up on a TCP connection that this side opened, such as one that a [port
    /// mapper](super::portmap) led to.
    ///
    /// # Errors
    /// See [`SdpError`].
    pub async fn over(device: &Device, tcp: TcpStream, settings: SdpSettings) -> Result<Self, SdpError> {
        // Its port has to be had again when the peer moves (section 13.1.1).
        SockRef::from(&tcp).set_reuse_address(true)?;
        settings.dress(&tcp)?;
        SdpStream::start(device, device.stream_of(tcp, Opener::Here)?, Role::Connecting, settings).await
    }
}

/// Waits for SDP connections.
#[derive(Debug)]
pub struct SdpListener {
    device: Device,
    tcp: TcpListener,
    settings: SdpSettings,
    /// Those that [`accept`](Self::accept) began.
    startups: Mutex<JoinSet<Result<SdpStream, SdpError>>>,
}

/// Receives that are posted ahead at most.
const MOST_RECEIVES: usize = 1 << 12;
/// Connections that TCP holds ready.
const BACKLOG: u32 = 1024;
/// Start-ups of a listener that go on at the same time; the connections of more peers wait in TCP's
/// queue.
const STARTUPS: usize = 256;

impl SdpListener {
    /// Listens on `address`; port 0 picks a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(device: &Device, address: SocketAddr, settings: SdpSettings) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        if address.is_ipv6() && settings.only_v6 {
            SockRef::from(&socket).set_only_v6(true)?;
        }
        socket.bind(address)?;
        let startups = Mutex::new(JoinSet::new());
        Ok(SdpListener { device: device.clone(), tcp: socket.listen(BACKLOG)?, settings, startups })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The error of TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// The next connection whose start-up is over. Up to 256 start-ups go on at a time, also when
    /// this is dropped before its end, so a silent peer delays no other one; it is given up after
    /// [`startup_timeout`](Settings::startup_timeout). Connections come in the order in which their
    /// start-ups end.
    ///
    /// # Errors
    /// See [`SdpError`]: of one peer; the listener goes on.
    pub async fn accept(&self) -> Result<SdpStream, SdpError> {
        let mut startups = self.startups.lock().await;
        loop {
            tokio::select! {
                biased;
                Some(started) = startups.join_next() => return started.unwrap_or(Err(SdpError::Closed)),
                incoming = self.incoming(), if startups.len() < STARTUPS => startups.spawn(incoming?.start()),
            };
        }
    }

    /// The next connection, whose start-up is still to come: for who keeps limits of its own.
    ///
    /// # Errors
    /// The error of TCP; the listener continues.
    pub async fn incoming(&self) -> io::Result<Incoming> {
        let (tcp, peer) = self.tcp.accept().await?;
        Ok(Incoming { device: self.device.clone(), tcp, peer, settings: self.settings })
    }
}

/// A TCP connection that came to a listener.
#[derive(Debug)]
pub struct Incoming {
    device: Device,
    tcp: TcpStream,
    peer: SocketAddr,
    settings: SdpSettings,
}

impl Incoming {
    /// The side that connected.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Where to.
    ///
    /// # Errors
    /// The error of TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Does the start-up.
    ///
    /// # Errors
    /// See [`SdpError`].
    pub async fn start(self) -> Result<SdpStream, SdpError> {
        self.settings.dress(&self.tcp)?;
        let stream = self.device.stream_of(self.tcp, Opener::Peer)?;
        SdpStream::start(&self.device, stream, Role::Accepting, self.settings).await
    }
}
