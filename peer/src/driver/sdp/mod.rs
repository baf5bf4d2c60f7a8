//! SDP sockets on a [`Device`]: [`SdpListener`] and [`SdpStream`], which are used like TCP sockets.
//!
//! Each connection has a Queue Pair and a task. The task connects the Queue Pair to the SDP state
//! machine ([`Connection`](crate::sdp::Connection)). The modules:
//!
//! - `stream`: the socket, its task, reading and writing; `api`: all other calls of a socket;
//! - `engine`: the state machine with its RNIC objects; `user`: the calls of the socket's user on
//!   the engine, such as reads and writes;
//! - `area`: memory of the RNIC; `spare_memory`: unused memory, which is kept while the connection
//!   transfers data;
//! - `outgoing`: written data, which is copied once into memory that Sends, Writes and SrcAvails
//!   use; `queue`: Work Requests that wait for the Send Queue;
//! - `posted`, `receive_sizer`: receives that are posted ahead, which means before the user reads.
//!   Therefore each transfer mechanism finds a posted receive;
//! - `arrived`: received data. A read copies the data once, from a receive or a Private Buffer;
//! - `failover`: moves a connection to another listener;
//! - `relay`: connects a socket to a TCP connection; `urgent`: TCP's urgent bytes for `relay`.
//!
//! Receives in the user's own memory are not supported. Therefore [`SdpStream::receive_all`]
//! (MSG_WAITALL) does not use the parameter `wait_all` of the state machine's
//! [`Connection::receive`](crate::sdp::Connection::receive). Instead, it copies bytes to the user's
//! buffer when they arrive. A buffer that must be filled completely is never advertised, as section
//! 9.3 of the SDP draft requires.

mod addresses;
mod api;
mod area;
mod arrived;
mod engine;
mod failover;
mod outgoing;
mod posted;
mod queue;
mod receive_sizer;
mod relay;
mod spare_memory;
mod statistics;
mod stream;
mod urgent;
mod user;

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

pub use relay::{RelayEnd, RelayResult, Side, relay};
pub use statistics::{HalfStatistics, Statistics};
pub use stream::SdpStream;

use super::device::Device;
use super::stream::Opener;
use super::tcp::reusable_socket;
use crate::sdp::{Refusal, Role, Settings, Violation};
use crate::verbs::{CqError, PostError, QpError};

/// Settings of SDP sockets.
#[derive(Debug, Clone, Copy)]
pub struct SdpSettings {
    /// Settings of SDP and of MPA.
    pub sdp: Settings,
    /// Time limit for the TCP connection. Default 10 s.
    pub connect_timeout: Duration,
    /// Maximum number of bytes that are written and not sent yet (SO_SNDBUF). Default 1 MiB.
    pub send_buffer: usize,
    /// Size in bytes of a receive that is posted ahead. Default 64 KiB.
    pub receive: usize,
    /// Number of receives that are posted ahead, at least 1. SO_RCVBUF is this number times
    /// `receive`. Default 4.
    pub receives: usize,
    /// Time without received data after which TCP's keep-alive probes the peer, at least 1 s
    /// (SO_KEEPALIVE; section 14.3). Default: no probes.
    pub keep_alive: Option<Duration>,
    /// If true, a listener on IPv6 accepts no IPv4 connections (IPV6_V6ONLY). Default false: a
    /// listener on `[::]` accepts IPv4 and IPv6 if the configuration of the host permits this.
    pub only_v6: bool,
    /// If true, Out-Of-Band bytes stay in the stream from the start (SO_OOBINLINE). Default false.
    pub oob_inline: bool,
    /// The local address from which this side connects (bind(2)). Port 0 picks a free port.
    /// Default: the operating system chooses.
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
    /// Turns on TCP's keep-alive if the settings require it.
    fn apply_keep_alive(&self, tcp: &TcpStream) -> io::Result<()> {
        let Some(idle) = self.keep_alive else { return Ok(()) };
        SockRef::from(tcp).set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))
    }
}

/// Why no connection was opened, or why a connection ended.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SdpError {
    /// An error of TCP, with its message.
    #[error("{1}")]
    Io(io::ErrorKind, String),
    /// The RNIC cannot create the objects that a connection needs.
    #[error("the RNIC cannot create the objects of a connection: {0}")]
    Rnic(String),
    /// The peer refused the connection during SDP start-up.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection was closed or reset during start-up.
    #[error("the connection was closed during start-up")]
    Closed,
    /// The peer broke a rule of SDP, so the connection cannot continue.
    #[error("the peer broke a rule of SDP: {0}")]
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
        let timed_out = |_| SdpError::Io(io::ErrorKind::TimedOut, "TCP did not connect in time".to_owned());
        let tcp = tokio::time::timeout(settings.connect_timeout, connecting).await.map_err(timed_out)??;
        SdpStream::over(device, tcp, settings).await
    }

    /// Starts SDP on a TCP connection that this side opened, for example to the address that a
    /// [port mapper](super::portmap) returned.
    ///
    /// # Errors
    /// See [`SdpError`].
    pub async fn over(device: &Device, tcp: TcpStream, settings: SdpSettings) -> Result<Self, SdpError> {
        // When the peer moves the connection, this side connects again from the same port (section
        // 13.1.1).
        SockRef::from(&tcp).set_reuse_address(true)?;
        settings.apply_keep_alive(&tcp)?;
        SdpStream::start(device, device.stream_of(tcp, Opener::Here)?, Role::Connecting, settings).await
    }
}

/// Accepts SDP connections.
#[derive(Debug)]
pub struct SdpListener {
    device: Device,
    tcp: TcpListener,
    settings: SdpSettings,
    /// Start-ups that [`accept`](Self::accept) has begun.
    startups: Mutex<JoinSet<Result<SdpStream, SdpError>>>,
}

/// Maximum number of receives that are posted ahead.
const MAX_RECEIVES: usize = 1 << 12;
/// Maximum number of connections that TCP queues for the listener.
const BACKLOG: u32 = 1024;
/// Maximum number of start-ups that a listener runs at the same time. Further connections wait in
/// TCP's queue.
const MAX_STARTUPS: usize = 256;

impl SdpListener {
    /// Listens on `address`. Port 0 picks a free port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(device: &Device, address: SocketAddr, settings: SdpSettings) -> io::Result<Self> {
        let socket = reusable_socket(address)?;
        if address.is_ipv6() && settings.only_v6 {
            SockRef::from(&socket).set_only_v6(true)?;
        }
        socket.bind(address)?;
        let startups = Mutex::new(JoinSet::new());
        Ok(SdpListener { device: device.clone(), tcp: socket.listen(BACKLOG)?, settings, startups })
    }

    /// Returns the address that the listener is bound to.
    ///
    /// # Errors
    /// The error of TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Waits for the next complete start-up, and returns its connection. Connections are returned
    /// in the order in which their start-ups complete. Up to 256 start-ups run concurrently, so a
    /// silent peer does not delay other peers. A start-up fails after
    /// [`startup_timeout`](Settings::startup_timeout). If this future is dropped, the start-ups
    /// continue.
    ///
    /// # Errors
    /// See [`SdpError`]. The error concerns one peer. The listener continues to accept.
    pub async fn accept(&self) -> Result<SdpStream, SdpError> {
        let mut startups = self.startups.lock().await;
        loop {
            tokio::select! {
                biased;
                Some(started) = startups.join_next() => return started.unwrap_or(Err(SdpError::Closed)),
                incoming = self.incoming(), if startups.len() < MAX_STARTUPS => startups.spawn(incoming?.start()),
            };
        }
    }

    /// Waits for the next TCP connection, and leaves the start-up to the caller. The caller can
    /// have its own limits.
    ///
    /// # Errors
    /// The error of TCP. The listener continues.
    pub async fn incoming(&self) -> io::Result<Incoming> {
        let (tcp, peer) = self.tcp.accept().await?;
        Ok(Incoming { device: self.device.clone(), tcp, peer, settings: self.settings })
    }
}

/// A TCP connection that a listener accepted, before SDP start-up.
#[derive(Debug)]
pub struct Incoming {
    device: Device,
    tcp: TcpStream,
    peer: SocketAddr,
    settings: SdpSettings,
}

impl Incoming {
    /// Returns the peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the local address of the connection.
    ///
    /// # Errors
    /// The error of TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Runs the SDP start-up.
    ///
    /// # Errors
    /// See [`SdpError`].
    pub async fn start(self) -> Result<SdpStream, SdpError> {
        self.settings.apply_keep_alive(&self.tcp)?;
        let stream = self.device.stream_of(self.tcp, Opener::Peer)?;
        SdpStream::start(&self.device, stream, Role::Accepting, self.settings).await
    }
}
