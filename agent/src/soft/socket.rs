//! One TCP connection of this host, for a connection of the software RNIC.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::{Domain, Protocol, SockRef, Type};
use weft_peer::service::DrivenConnection;
use weft_peer::{Instant, Transmit};

use super::stream::SoftConnection;

/// Maximum number of reads before other sockets are driven.
const READS: usize = 16;

/// The readiness that a socket waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    Read,
    Write,
}

/// A TCP connection. When the stream is over, the endpoint remains, because the tester can still
/// send requests about the connection.
#[derive(Debug)]
pub(super) struct Socket {
    connection: SoftConnection,
    stream: Option<TcpStream>,
    connecting: bool,
    unsent: Bytes,
    /// Whether the peer can still send.
    readable: bool,
}

/// Returns the segment size of a stream in bytes.
pub(super) fn emss(stream: &TcpStream) -> io::Result<u32> {
    SockRef::from(stream).tcp_mss()
}

impl Socket {
    /// Returns an accepted socket, which is ready.
    pub(super) fn accepted(connection: SoftConnection, stream: TcpStream) -> Self {
        Socket { connection, stream: Some(stream), connecting: false, unsent: Bytes::new(), readable: true }
    }

    /// Starts to connect to a peer.
    pub(super) fn connect(mut connection: SoftConnection, now: Instant, to: SocketAddr) -> Self {
        let stream = start_connect(to).map_err(|_| connection.handle_reset(now)).ok();
        Socket { connection, stream, connecting: true, unsent: Bytes::new(), readable: true }
    }

    /// Returns whether the stream exists, or the tester still knows the connection.
    pub(super) fn is_needed(&self) -> bool {
        self.stream.is_some() || self.connection.is_known()
    }

    /// Returns the time at which the socket must be driven, if nothing else happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.stream.as_ref().and_then(|_| self.connection.poll_timeout())
    }

    pub(super) fn descriptor(&self, interest: Interest) -> Option<BorrowedFd<'_>> {
        let stream = self.stream.as_ref()?;
        let is_interested = match interest {
            Interest::Read => !self.connecting && self.readable && self.connection.is_ready(),
            Interest::Write => self.connecting || !self.unsent.is_empty(),
        };
        is_interested.then(|| stream.as_fd())
    }

    /// Sends, receives and handles timeouts, as far as possible without blocking.
    pub(super) fn drive(&mut self, now: Instant, buffer: &mut [u8]) {
        let mut reads = 0;
        loop {
            let is_due = self.connection.poll_timeout().is_some_and(|at| at <= now);
            let mut progressed = is_due && self.stream.is_some();
            if progressed {
                self.connection.handle_timeout(now);
            }
            if !self.is_connected(now) {
                if !progressed {
                    return;
                }
                continue;
            }
            progressed |= self.take_output(now);
            let sent = self.send();
            if reads < READS && sent.is_ok() {
                let received = self.receive(now, buffer);
                progressed |= received;
                reads += usize::from(received);
            }
            match sent {
                Ok(sent) => progressed |= sent,
                Err(_) => self.handle_reset(now),
            }
            if self.stream.is_none() || !progressed {
                return;
            }
        }
    }

    fn is_connected(&mut self, now: Instant) -> bool {
        let Some(stream) = &self.stream else { return false };
        if !self.connecting {
            return true;
        }
        let ready = match stream.take_error() {
            Ok(None) if stream.peer_addr().is_err() => {
                // The endpoint no longer waits for the connection.
                if self.connection.has_given_up() {
                    self.stream = None;
                }
                return false;
            }
            Ok(None) => stream.set_nodelay(true).and_then(|()| emss(stream)),
            Ok(Some(why)) | Err(why) => Err(why),
        };
        let Ok(emss) = ready else {
            self.handle_reset(now);
            return false;
        };
        self.connection.set_emss(emss);
        self.connecting = false;
        true
    }

    /// Takes the next output from the endpoint. Returns whether anything changed.
    fn take_output(&mut self, now: Instant) -> bool {
        let Some(stream) = self.stream.as_ref().filter(|_| self.unsent.is_empty()) else { return false };
        match self.connection.poll_transmit(now) {
            Some(Transmit::Octets(octets)) => self.unsent = octets,
            Some(Transmit::Fin) => {
                if stream.shutdown(Shutdown::Write).is_err() {
                    self.handle_reset(now);
                }
            }
            Some(Transmit::Reset) => {
                // The stream is closed even if the socket could not send RST.
                let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
                self.stream = None;
            }
            None if self.connection.is_over() => self.stream = None,
            None => return false,
        }
        true
    }

    fn send(&mut self) -> io::Result<bool> {
        let Some(stream) = self.stream.as_mut().filter(|_| !self.unsent.is_empty()) else { return Ok(false) };
        match stream.write(&self.unsent) {
            Ok(sent) => {
                self.unsent.advance(sent);
                Ok(true)
            }
            Err(why) if would_block(&why) => Ok(false),
            Err(why) => Err(why),
        }
    }

    fn receive(&mut self, now: Instant, buffer: &mut [u8]) -> bool {
        let ready = self.readable && self.connection.is_ready();
        let Some(stream) = self.stream.as_mut().filter(|_| ready) else { return false };
        match stream.read(buffer) {
            Ok(0) => {
                self.readable = false;
                self.connection.handle_fin(now);
            }
            Ok(octets) => self.connection.handle_octets(now, buffer.get(..octets).unwrap_or_default()),
            Err(why) if would_block(&why) => return false,
            Err(_) => self.handle_reset(now),
        }
        true
    }

    fn handle_reset(&mut self, now: Instant) {
        (self.stream, self.unsent) = (None, Bytes::new());
        self.connection.handle_reset(now);
    }
}

fn would_block(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn start_connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket2::Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(why) if why.raw_os_error() != Some(libc::EINPROGRESS) => Err(why),
        _ => Ok(socket.into()),
    }
}
