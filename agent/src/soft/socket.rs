//! One TCP connection of this host, for a connection of the software RNIC.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::{Domain, Protocol, SockRef, Type};
use weft_peer::service::Served;
use weft_peer::{Instant, Transmit};

use super::stream::SoftEnd;

/// Maximum number of reads before other sockets are driven.
const READS: usize = 16;

/// What a socket waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Read,
    Write,
}

/// A TCP connection. Its endpoint remains when the stream is over, because the tester may still
/// send requests about the connection.
#[derive(Debug)]
pub(super) struct Socket {
    end: SoftEnd,
    stream: Option<TcpStream>,
    connecting: bool,
    unsent: Bytes,
    /// Whether the peer may still send.
    readable: bool,
}

/// Returns the segment size of a stream in bytes.
pub(super) fn emss(stream: &TcpStream) -> io::Result<u32> {
    SockRef::from(stream).tcp_mss()
}

impl Socket {
    /// Returns an accepted socket, which is ready.
    pub(super) fn accepted(end: SoftEnd, stream: TcpStream) -> Self {
        Socket { end, stream: Some(stream), connecting: false, unsent: Bytes::new(), readable: true }
    }

    /// Starts to connect to a peer.
    pub(super) fn connect(mut end: SoftEnd, now: Instant, to: SocketAddr) -> Self {
        let stream = begin(to).map_err(|_| end.handle_reset(now)).ok();
        Socket { end, stream, connecting: true, unsent: Bytes::new(), readable: true }
    }

    /// Returns whether the stream exists, or the tester still knows the connection.
    pub(super) fn is_there(&self) -> bool {
        self.stream.is_some() || self.end.is_known()
    }

    /// Returns the time at which the socket must be driven, if nothing else happens before.
    pub(super) fn until(&self) -> Option<Instant> {
        self.stream.as_ref().and_then(|_| self.end.poll_timeout())
    }

    pub(super) fn wants(&self, what: Wants) -> Option<BorrowedFd<'_>> {
        let stream = self.stream.as_ref()?;
        let wants = match what {
            Wants::Read => !self.connecting && self.readable && self.end.is_ready(),
            Wants::Write => self.connecting || !self.unsent.is_empty(),
        };
        wants.then(|| stream.as_fd())
    }

    /// Sends, receives and handles timeouts, as far as possible without blocking.
    pub(super) fn drive(&mut self, now: Instant, buffer: &mut [u8]) {
        let mut reads = 0;
        loop {
            let is_due = self.end.poll_timeout().is_some_and(|at| at <= now);
            let mut moved = is_due && self.stream.is_some();
            if moved {
                self.end.handle_timeout(now);
            }
            if !self.is_connected(now) {
                if !moved {
                    return;
                }
                continue;
            }
            moved |= self.take(now);
            let sent = self.send();
            if reads < READS && sent.is_ok() {
                let received = self.receive(now, buffer);
                moved |= received;
                reads += usize::from(received);
            }
            match sent {
                Ok(sent) => moved |= sent,
                Err(_) => self.is_reset(now),
            }
            if self.stream.is_none() || !moved {
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
                if self.end.is_given_up() {
                    self.stream = None;
                }
                return false;
            }
            Ok(None) => stream.set_nodelay(true).and_then(|()| emss(stream)),
            Ok(Some(why)) | Err(why) => Err(why),
        };
        match ready {
            Ok(emss) => {
                self.end.set_emss(emss);
                self.connecting = false;
                true
            }
            Err(_) => {
                self.is_reset(now);
                false
            }
        }
    }

    /// Takes the next output from the endpoint. Returns whether anything changed.
    fn take(&mut self, now: Instant) -> bool {
        let Some(stream) = self.stream.as_ref().filter(|_| self.unsent.is_empty()) else { return false };
        match self.end.poll_transmit(now) {
            Some(Transmit::Octets(octets)) => self.unsent = octets,
            Some(Transmit::Fin) => {
                if stream.shutdown(Shutdown::Write).is_err() {
                    self.is_reset(now);
                }
            }
            Some(Transmit::Reset) => {
                // The stream is closed, whether or not the socket could send RST.
                let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
                self.stream = None;
            }
            None if self.end.is_over() => self.stream = None,
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
            Err(why) if is_later(&why) => Ok(false),
            Err(why) => Err(why),
        }
    }

    fn receive(&mut self, now: Instant, buffer: &mut [u8]) -> bool {
        let ready = self.readable && self.end.is_ready();
        let Some(stream) = self.stream.as_mut().filter(|_| ready) else { return false };
        match stream.read(buffer) {
            Ok(0) => {
                self.readable = false;
                self.end.handle_fin(now);
            }
            Ok(octets) => self.end.handle_octets(now, buffer.get(..octets).unwrap_or_default()),
            Err(why) if is_later(&why) => return false,
            Err(_) => self.is_reset(now),
        }
        true
    }

    fn is_reset(&mut self, now: Instant) {
        (self.stream, self.unsent) = (None, Bytes::new());
        self.end.handle_reset(now);
    }
}

fn is_later(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn begin(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket2::Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(why) if why.raw_os_error() != Some(libc::EINPROGRESS) => Err(why),
        _ => Ok(socket.into()),
    }
}
