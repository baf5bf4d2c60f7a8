//! Opens the SDP connections that programs request.
//!
//! The agent first connects to the peer by SDP. Then the program's socket connects to the agent on
//! the loopback interface. In this order, the program's call can return the result of the SDP
//! connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use weft_peer::driver::portmap::ConnectError;
use weft_peer::driver::sdp::{SdpError, Side, relay};
use weft_peer::shim::{AGENT_V4, AGENT_V6, Answer, Failure, Names, Request, Route};

use super::pending_connect::PendingConnect;
use super::{Agent, Refusal, STEP_TIMEOUT, read, write};
use crate::cmd::sdp::connection_log::Entry;
use crate::cmd::sdp::outgoing::ConnectorError;

/// The connection that a program requested.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectRequest {
    pub(super) service: SocketAddr,
    pub(super) by: Route,
    /// The requested source address.
    pub(super) source: Option<SocketAddr>,
}

impl Agent {
    /// Handles a connection, from the program's request to the end of the connection.
    pub(super) async fn connect(self: &Arc<Self>, mut shim: UnixStream, request: ConnectRequest, no_wait: bool) {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            let message = "the agent already has the maximum number of connections; raise its option --most".to_owned();
            return write(&mut shim, &Answer::Failed(Failure::Other, message)).await;
        };
        let entry = self.log.open(format!("a program to {}", request.service));
        if no_wait {
            self.connect_nonblocking(shim, request, entry).await;
        } else {
            self.connect_first(shim, request, entry).await;
        }
        drop(permit);
    }

    /// Connects for a program with a blocking socket. The program waits until SDP is connected.
    async fn connect_first(&self, mut shim: UnixStream, request: ConnectRequest, entry: Entry<'_>) {
        let onward = match self.connect_onward(request).await {
            Ok(onward) => onward,
            Err((failure, message)) => {
                entry.finish_failed(&message);
                return write(&mut shim, &Answer::Failed(failure, message)).await;
            }
        };
        match self.accept_program(&mut shim, request.service).await {
            Ok((program, from, here)) => {
                let local = onward.local_addr().unwrap_or(from);
                let name_entry = self.names.insert(from, here, Names { local, peer: request.service });
                write(&mut shim, &Answer::Done).await;
                drop(shim);
                entry.finish_relayed(&relay(Side::Tcp(program), onward, self.stopped()).await);
                drop(name_entry);
            }
            Err(error) => {
                onward.abort().await;
                entry.finish_failed(&format!("the program did not connect to the agent: {error}"));
            }
        }
    }

    /// Connects for a program with a non-blocking socket. The program's TCP connection waits at a
    /// [`PendingConnect`] until SDP is connected.
    async fn connect_nonblocking(&self, mut shim: UnixStream, request: ConnectRequest, entry: Entry<'_>) {
        let pending = match PendingConnect::reserve(request.service.ip()) {
            Ok(pending) => pending,
            Err(error) => {
                let message = format!("cannot reserve a loopback address for the program: {error}");
                entry.finish_failed(&message);
                return write(&mut shim, &Answer::Failed(Failure::Other, message)).await;
            }
        };
        write(&mut shim, &Answer::At(pending.at())).await;
        let Some(Request::From(from)) = read(&mut shim).await else {
            return entry.finish_failed(&"the program did not connect to the agent");
        };
        drop(shim);
        self.failures.forget(from);
        let onward = match self.connect_onward(request).await {
            Ok(onward) => onward,
            Err(why) => {
                entry.finish_failed(&why.1);
                self.failures.insert(from, why);
                // Ignore errors, because the program can have ended.
                let _ = pending.refuse(from).await;
                return;
            }
        };
        let local = onward.local_addr().unwrap_or(from);
        // The program can query the addresses as soon as it is connected.
        let name_entry = self.names.insert(from, pending.at(), Names { local, peer: request.service });
        match pending.complete(from).await {
            Ok(program) => {
                drop(pending);
                entry.finish_relayed(&relay(Side::Tcp(program), onward, self.stopped()).await);
            }
            Err(error) => {
                onward.abort().await;
                entry.finish_failed(&format!("the connection to the program failed: {error}"));
            }
        }
        drop(name_entry);
    }

    /// Connects by SDP, or by plain TCP if the program's rule allows plain TCP. Fails if the agent
    /// stops.
    async fn connect_onward(&self, request: ConnectRequest) -> Result<Side, Refusal> {
        tokio::select! {
            onward = self.connect_by_route(request) => onward,
            () = self.stopped() => Err((Failure::Other, "the agent is stopping".to_owned())),
        }
    }

    /// Connects like [`Agent::connect_onward`], but does not fail when the agent stops.
    async fn connect_by_route(&self, request: ConnectRequest) -> Result<Side, Refusal> {
        let ConnectRequest { service, by, source } = request;
        let connector = self.connector.with_source(source);
        let connected = match by {
            Route::Sdp(address) => connector.connect_directly(address).await.map(Side::Sdp),
            Route::Both(address) => connector.connect_with_fallback(address, service).await,
            Route::Mapper { mapper, sdp_only } => connector.connect_mapped(mapper, service, !sdp_only).await,
        };
        let side = connected.map_err(|error| (failure(&error), error.to_string()))?;
        self.sdp.prepare(&side).map_err(|error| (Failure::Other, format!("{error:#}")))?;
        Ok(side)
    }

    /// Accepts the TCP connection of the program on the loopback interface. Returns the connection,
    /// the address of the program's socket, and the address of the agent's socket.
    async fn accept_program(
        &self,
        shim: &mut UnixStream,
        service: SocketAddr,
    ) -> io::Result<(TcpStream, SocketAddr, SocketAddr)> {
        let listener = listener(service.ip())?;
        let here = listener.local_addr()?;
        write(shim, &Answer::At(here)).await;
        let meeting = async {
            let Some(Request::From(from)) = read(shim).await else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            loop {
                // Any process on this host can connect, so check the source address.
                let (program, peer) = listener.accept().await?;
                if peer == from {
                    program.set_nodelay(true)?;
                    return Ok((program, from, here));
                }
            }
        };
        tokio::select! {
            met = tokio::time::timeout(STEP_TIMEOUT, meeting) => met?,
            () = self.stopped() => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

/// Listens on the loopback interface for one connection, with the address family of `like`.
fn listener(like: IpAddr) -> io::Result<TcpListener> {
    let (socket, ip) = match like {
        IpAddr::V4(_) => (TcpSocket::new_v4()?, IpAddr::V4(AGENT_V4)),
        IpAddr::V6(_) => (TcpSocket::new_v6()?, IpAddr::V6(AGENT_V6)),
    };
    socket.bind(SocketAddr::new(ip, 0))?;
    socket.listen(8)
}

/// Returns the error that the program's call reports.
fn failure(error: &ConnectorError) -> Failure {
    let io = match error {
        ConnectorError::Sdp { error: SdpError::Io(kind, _), .. } => *kind,
        ConnectorError::Mapped(ConnectError::Tcp { error, .. }) => error.kind(),
        // The peer exists, and rejected the connection.
        ConnectorError::Sdp { .. } | ConnectorError::Plain { .. } => io::ErrorKind::ConnectionRefused,
        ConnectorError::Mapped(ConnectError::Pm(_)) => io::ErrorKind::Other,
    };
    match io {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Failure::Refused,
        io::ErrorKind::TimedOut => Failure::TimedOut,
        io::ErrorKind::AddrInUse => Failure::InUse,
        io::ErrorKind::AddrNotAvailable => Failure::NotAvailable,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Failure::Unreachable,
        _ => Failure::Other,
    }
}
