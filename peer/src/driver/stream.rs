//! A TCP connection of a [`Device`](super::Device): reads and writes that do not wait, and the tape that they leave.

use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::tape::{Direction, Tape, What};
use super::tcp::Clock;

/// One connection.
#[derive(Debug)]
pub(super) struct Stream {
    tcp: TcpStream,
    log: Option<Log>,
    /// Wakes the task that drives it.
    pub(super) wake: Notify,
}

/// Where a connection is recorded.
#[derive(Debug)]
struct Log {
    tape: Tape,
    clock: Clock,
    number: u32,
    /// This side's end of the connection is on the tape.
    ended: AtomicBool,
}

/// Who connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    Here,
    Peer,
}

impl Stream {
    /// Takes over a connection, without delay of small segments; `number` is the tape's for it.
    pub(super) fn new(tcp: TcpStream, tape: Option<&Tape>, clock: Clock, number: u32, by: Opener) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        let log = tape.map(|tape| Log { tape: tape.clone(), clock, number, ended: AtomicBool::new(false) });
        let stream = Stream { tcp, log, wake: Notify::new() };
        if stream.log.is_some() {
            let (tester, target) = (stream.tcp.local_addr()?, stream.tcp.peer_addr()?);
            let direction = if by == Opener::Here { Direction::ToTarget } else { Direction::FromTarget };
            stream.record(direction, || What::Connected { tester, target });
        }
        Ok(stream)
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.peer_addr()
    }

    /// TCP's effective maximum segment size, in octets.
    pub(super) fn emss(&self) -> io::Result<u32> {
        SockRef::from(&self.tcp).tcp_mss()
    }

    /// Waits until it can be read from, or written to.
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<()> {
        self.tcp.ready(interest).await.map(|_| ())
    }

    /// Reads what is here, as much as fits; 0 at the peer's FIN.
    ///
    /// # Errors
    /// `WouldBlock`, or what TCP says.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut short = 0;
        let read = self.tcp.try_io(Interest::READABLE, || match (&*SockRef::from(&self.tcp)).read(buffer) {
            // Nothing is left: told to the runtime now, which saves a read that finds nothing.
            Ok(octets) if octets > 0 && octets < buffer.len() => {
                short = octets;
                Err(io::ErrorKind::WouldBlock.into())
            }
            read => read,
        });
        self.noted(if short > 0 { Ok(short) } else { read }, buffer)
    }

    /// Reads what is here without asking the runtime whether there is something.
    ///
    /// # Errors
    /// `WouldBlock`, or what TCP says.
    pub(super) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&*SockRef::from(&self.tcp)).read(buffer);
        self.noted(read, buffer)
    }

    fn noted(&self, read: io::Result<usize>, buffer: &[u8]) -> io::Result<usize> {
        match &read {
            Ok(0) => self.record(Direction::FromTarget, || What::Fin),
            Ok(octets) => {
                self.record(Direction::FromTarget, || What::Octets(Bytes::copy_from_slice(&buffer[..*octets])));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.record(Direction::FromTarget, || What::Reset),
        }
        read
    }

    /// Writes as much as TCP takes.
    ///
    /// # Errors
    /// `WouldBlock`, or what TCP says.
    pub(super) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.tcp.try_write_vectored(slices)?;
        self.record(Direction::ToTarget, || {
            let mut octets: Vec<u8> = Vec::with_capacity(written);
            for slice in slices {
                octets.extend_from_slice(&slice[..slice.len().min(written - octets.len())]);
            }
            What::Octets(octets.into())
        });
        Ok(written)
    }

    /// Writes all of it, waiting for TCP where it takes no more.
    pub(super) async fn write_all(&self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            self.ready(Interest::WRITABLE).await?;
            match self.write(&[IoSlice::new(octets)]) {
                Ok(written) => octets = &octets[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads some octets, waiting for the first; 0 at the peer's FIN.
    pub(super) async fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ready(Interest::READABLE).await?;
            match self.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// Closes this side's half.
    pub(super) fn finish(&self) -> io::Result<()> {
        SockRef::from(&self.tcp).shutdown(Shutdown::Write)?;
        self.record_end(What::Fin);
        Ok(())
    }

    /// The connection is aborted when this is dropped: with a lingering time of zero, closing the socket sends RST.
    pub(super) fn reset(&self) {
        // The connection is gone whether or not the socket could be told.
        let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        self.record_end(What::Reset);
    }

    fn record_end(&self, what: What) {
        if let Some(log) = &self.log {
            log.ended.store(true, Ordering::Relaxed);
        }
        self.record(Direction::ToTarget, || what);
    }

    fn record(&self, direction: Direction, what: impl FnOnce() -> What) {
        if let Some(log) = &self.log {
            log.tape.record(log.clock.now(), log.number, direction, what());
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.log.as_ref().is_some_and(|log| !log.ended.load(Ordering::Relaxed)) {
            // Closing the socket closes this side's half.
            self.record_end(What::Fin);
        }
    }
}
