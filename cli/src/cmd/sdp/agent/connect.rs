//! Connects by SDP for a program.
//!
//! The agent first connects to the peer by SDP, so that the program's call returns the result of
//! SDP. Then the program's socket connects to the agent on the loopback interface.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use weft_peer::driver::portmap::ConnectError;
use weft_peer::driver::sdp::{SdpError, Side, relay};
use weft_peer::shim::{Answer, By, Failure, HERE_V4, HERE_V6, Names, Request};

use super::gate::Gate;
use super::{Agent, Refusal, STEP, read, write};
use crate::cmd::sdp::ledger::Entry;
use crate::cmd::sdp::outward::OutwardError;

/// The connection that a program requested.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) service: SocketAddr,
    pub(super) by: By,
    /// The requested source address.
    pub(super) source: Option<SocketAddr>,
}

impl Agent {
    /// Handles a connection from the request to its end.
    pub(super) async fn connect(self: &Arc<Self>, mut shim: UnixStream, wish: Wish, no_wait: bool) {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            let words = "the agent has the maximum number of connections".to_owned();
            return write(&mut shim, &Answer::Failed(Failure::Other, words)).await;
        };
        let entry = self.ledger.open(format!("a program to {}", wish.service));
        if no_wait {
            self.connect_at_a_gate(shim, wish, entry).await;
        } else {
            self.connect_first(shim, wish, entry).await;
        }
        drop(permit);
    }

    /// Connects for a program with a blocking socket. The program waits until SDP is connected.
    async fn connect_first(&self, mut shim: UnixStream, wish: Wish, entry: Entry<'_>) {
        let onward = match self.onward(wish).await {
            Ok(onward) => onward,
            Err((failure, words)) => {
                entry.failed(&words);
                return write(&mut shim, &Answer::Failed(failure, words)).await;
            }
        };
        match self.meet(&mut shim, wish.service).await {
            Ok((program, from, here)) => {
                let local = onward.local_addr().unwrap_or(from);
                let row = self.names.insert(from, here, Names { local, peer: wish.service });
                write(&mut shim, &Answer::Done).await;
                drop(shim);
                entry.over(&relay(Side::Tcp(program), onward, self.stopped()).await);
                drop(row);
            }
            Err(error) => {
                onward.abort().await;
                entry.failed(&format!("the program did not connect: {error}"));
            }
        }
    }

    /// Connects for a program with a non-blocking socket. The program's TCP connection waits at a
    /// [`Gate`] until SDP is connected.
    async fn connect_at_a_gate(&self, mut shim: UnixStream, wish: Wish, entry: Entry<'_>) {
        let gate = match Gate::shut(wish.service.ip()) {
            Ok(gate) => gate,
            Err(error) => {
                let words = format!("cannot open an address for the program: {error}");
                entry.failed(&words);
                return write(&mut shim, &Answer::Failed(Failure::Other, words)).await;
            }
        };
        write(&mut shim, &Answer::At(gate.at())).await;
        let Some(Request::From(from)) = read(&mut shim).await else {
            return entry.failed(&"the program did not connect");
        };
        drop(shim);
        self.failures.forget(from);
        let onward = match self.onward(wish).await {
            Ok(onward) => onward,
            Err(why) => {
                entry.failed(&why.1);
                self.failures.insert(from, why);
                // Ignore errors, because the program may have ended.
                let _ = gate.refuse(from).await;
                return;
            }
        };
        let local = onward.local_addr().unwrap_or(from);
        // The program may query names as soon as it is connected.
        let row = self.names.insert(from, gate.at(), Names { local, peer: wish.service });
        match gate.admit(from).await {
            Ok(program) => {
                drop(gate);
                entry.over(&relay(Side::Tcp(program), onward, self.stopped()).await);
            }
            Err(error) => {
                onward.abort().await;
                entry.failed(&format!("the program is gone: {error}"));
            }
        }
        drop(row);
    }

    /// Connects by SDP, or by plain TCP if the program's rule allows plain TCP. Fails if the agent
    /// stops.
    async fn onward(&self, wish: Wish) -> Result<Side, Refusal> {
        tokio::select! {
            onward = self.connected(wish) => onward,
            () = self.stopped() => Err((Failure::Other, "the agent is stopping".to_owned())),
        }
    }

    /// Connects as [`Agent::onward`], but does not stop with the agent.
    async fn connected(&self, wish: Wish) -> Result<Side, Refusal> {
        let Wish { service, by, source } = wish;
        let outward = self.outward.from(source);
        let connected = match by {
            By::Sdp(address) => outward.direct(address).await.map(Side::Sdp),
            By::Both(address) => outward.both(address, service).await,
            By::Mapper { mapper, sdp_only } => outward.mapped(mapper, service, !sdp_only).await,
        };
        let side = connected.map_err(|error| (failure(&error), error.to_string()))?;
        self.sdp.dress(&side).map_err(|error| (Failure::Other, format!("{error:#}")))?;
        Ok(side)
    }

    /// Accepts the TCP connection of the program on the loopback interface. Returns the connection,
    /// the address of the program's socket, and the address of the agent's socket.
    async fn meet(
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
            met = tokio::time::timeout(STEP, meeting) => met?,
            () = self.stopped() => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

/// Listens on the loopback interface for one connection, with the address family of `like`.
fn listener(like: IpAddr) -> io::Result<TcpListener> {
    let (socket, ip) = match like {
        IpAddr::V4(_) => (TcpSocket::new_v4()?, IpAddr::V4(HERE_V4)),
        IpAddr::V6(_) => (TcpSocket::new_v6()?, IpAddr::V6(HERE_V6)),
    };
    socket.bind(SocketAddr::new(ip, 0))?;
    socket.listen(8)
}

/// Returns the error that the program's call reports.
fn failure(error: &OutwardError) -> Failure {
    let io = match error {
        OutwardError::Sdp { error: SdpError::Io(kind, _), .. } => *kind,
        OutwardError::Mapped(ConnectError::Tcp { error, .. }) => error.kind(),
        // The peer exists, and rejected the connection.
        OutwardError::Sdp { .. } | OutwardError::Plain { .. } => io::ErrorKind::ConnectionRefused,
        OutwardError::Mapped(ConnectError::Pm(_)) => io::ErrorKind::Other,
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
