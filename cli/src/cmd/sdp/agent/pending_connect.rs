//! A pending connection of a program with a non-blocking socket. The program connects by TCP to an
//! address of the agent. The connection neither completes nor fails before the agent knows whether
//! SDP has connected.
//!
//! A listener at this address drops all packets (SO_ATTACH_FILTER). So the kernel sends the
//! program's SYN, gets no answer, and waits. To complete the connection, the agent connects from
//! the same address to the program's socket. Two SYNs that cross each other establish a connection
//! (RFC 9293, section 3.5).
//!
//! To refuse the connection, the agent also connects to the program's socket, but delays its
//! acknowledgement (TCP_QUICKACK). The agent then resets the connection before the program's side
//! is established.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};
use weft_peer::shim::{AGENT_V4, AGENT_V6};

/// A filter program with one instruction (BPF_RET with BPF_K), which passes 0 bytes of each packet.
const DROP_ALL: [SockFilter; 1] = [SockFilter::new(0x06, 0, 0, 0)];
/// The agent waits this long for an answer of the program's socket on the loopback interface.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// An address at which a connection is pending. The address is reserved until this value is
/// dropped.
#[derive(Debug)]
pub(super) struct PendingConnect {
    at: SocketAddr,
    _listener: Socket,
}

impl PendingConnect {
    /// Reserves a loopback address of the same address family as `like`.
    pub(super) fn reserve(like: IpAddr) -> io::Result<Self> {
        let at = match like {
            IpAddr::V4(_) => SocketAddr::new(AGENT_V4.into(), 0),
            IpAddr::V6(_) => SocketAddr::new(AGENT_V6.into(), 0),
        };
        let listener = socket_at(at)?;
        listener.attach_filter(&DROP_ALL)?;
        listener.listen(1)?;
        let at = listener.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(PendingConnect { at, _listener: listener })
    }

    /// The address that programs connect to.
    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Lets the connection of the program at `from` complete.
    pub(super) async fn complete(&self, from: SocketAddr) -> io::Result<TcpStream> {
        let socket = socket_at(self.at)?;
        socket.set_nonblocking(true)?;
        let stream = TcpSocket::from_std_stream(socket.into()).connect(from).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Resets the connection of the program at `from` before it completes.
    pub(super) async fn refuse(&self, from: SocketAddr) -> io::Result<()> {
        let socket = socket_at(self.at)?;
        socket.set_tcp_quickack(false)?;
        socket.set_linger(Some(Duration::ZERO))?;
        // Use a separate thread, so that no other task delays this call. The kernel delays the
        // acknowledgement only for a short time.
        let refusing = tokio::task::spawn_blocking(move || socket.connect_timeout(&from.into(), ANSWER_TIMEOUT));
        refusing.await.map_err(io::Error::other)?
    }
}

/// Opens a socket at this address. Other sockets of this user can use the same address.
fn socket_at(at: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_port(true)?;
    socket.bind(&at.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{Ipv4Addr, Ipv6Addr};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A program that has started to connect, and the address of its socket.
    fn program(to: SocketAddr) -> (Socket, SocketAddr) {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        assert_eq!(socket.connect(&to.into()).unwrap_err().raw_os_error(), Some(115), "EINPROGRESS");
        let from = socket.local_addr().unwrap().as_socket().unwrap();
        (socket, from)
    }

    fn stream(program: Socket) -> TcpStream {
        TcpStream::from_std(program.into()).unwrap()
    }

    #[tokio::test]
    async fn a_completed_connection_transfers_data() {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let pending = PendingConnect::reserve(ip).unwrap();
            let (program, from) = program(pending.at());
            assert_eq!(program.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
            let mut here = pending.complete(from).await.unwrap();
            drop(pending);
            let mut there = stream(program);
            there.writable().await.unwrap();
            assert!(there.take_error().unwrap().is_none());
            here.write_all(b"ping").await.unwrap();
            let mut got = [0; 4];
            there.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, b"ping");
        }
    }

    #[tokio::test]
    async fn a_refused_connection_never_completes() {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let pending = PendingConnect::reserve(ip).unwrap();
            let (program, from) = program(pending.at());
            pending.refuse(from).await.unwrap();
            let there = stream(program);
            there.writable().await.unwrap();
            assert_eq!(there.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionReset);
        }
    }

    #[tokio::test]
    async fn rejects_a_program_that_is_gone() {
        let pending = PendingConnect::reserve(Ipv4Addr::LOCALHOST.into()).unwrap();
        let (program, from) = program(pending.at());
        drop(program);
        assert_eq!(pending.complete(from).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(pending.refuse(from).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
