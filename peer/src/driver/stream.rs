//! A TCP connection of a [`Device`](super::Device): reads and writes that do not wait, and the tape
//! that they leave.

use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::sleep_until;

use super::clock::Clock;
use super::tape::{Direction, Tape, Track, What};
use crate::connection::Transmit;
use crate::hostile::mangle::Mangler;
use crate::time::Instant;

/// One connection.
#[derive(Debug)]
pub(super) struct Stream {
    tcp: TcpStream,
    clock: Clock,
    mangled: Option<Mutex<Mangled>>,
    log: Option<Log>,
}

/// Where a connection is recorded.
#[derive(Debug)]
struct Log {
    track: Track,
    /// This side's end of the connection is on the tape.
    ended: AtomicBool,
    /// Held from a write to its record, and while a read is recorded: no thread records an answer
    /// before what it answers.
    order: Mutex<()>,
}

/// The layer between the endpoint and TCP, if it is configured to mangle.
#[derive(Debug)]
struct Mangled {
    mangler: Mangler,
    /// A write that TCP has taken only in part.
    unsent: Bytes,
    /// It has reset the connection.
    reset: bool,
}

/// The state of a mangler's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Nothing, for now.
    Idle,
    /// TCP takes no more.
    Blocked,
    /// The connection is reset.
    Reset,
}

/// The side that connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    Here,
    Peer,
}

impl Stream {
    /// Takes over a connection, without delay of small segments.
    pub(super) fn new(
        tcp: TcpStream,
        tape: Option<&Tape>,
        mangler: Option<Mangler>,
        clock: Clock,
        by: Opener,
    ) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        let log = tape.map(|tape| Log { track: tape.track(), ended: AtomicBool::new(false), order: Mutex::new(()) });
        let mangled = mangler.map(|mangler| Mutex::new(Mangled { mangler, unsent: Bytes::new(), reset: false }));
        let stream = Stream { tcp, clock, mangled, log };
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

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// TCP's effective maximum segment size, in octets.
    pub(super) fn emss(&self) -> io::Result<u32> {
        SockRef::from(&self.tcp).tcp_mss()
    }

    /// Waits until it can be read from, or written to.
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<()> {
        self.tcp.ready(interest).await.map(|_| ())
    }

    /// It can be read from; otherwise the task is woken then. Of the tasks that ask, the last one
    /// is.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_read_ready(cx)
    }

    /// It can be written to; otherwise the task is woken then. Of the tasks that ask, the last one
    /// is.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_write_ready(cx)
    }

    /// Reads what is here, as much as fits; 0 at the peer's FIN.
    ///
    /// # Errors
    /// `WouldBlock`, or the error of TCP.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut short = 0;
        let read = self.tcp.try_io(Interest::READABLE, || match (&*SockRef::from(&self.tcp)).read(buffer) {
            // Nothing is left: reported to the runtime now, which saves a read that finds nothing.
            Ok(octets) if octets > 0 && octets < buffer.len() => {
                short = octets;
                Err(io::ErrorKind::WouldBlock.into())
            }
            read => read,
        });
        let read = if short > 0 { Ok(short) } else { read };
        let _order = self.in_order();
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

    /// Writes as much as TCP, or the mangler, takes.
    ///
    /// # Errors
    /// `WouldBlock`, or the error of TCP.
    pub(super) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(mut mangled) = self.mangled() else { return self.write_to_tcp(slices) };
        if !mangled.mangler.has_room() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let octets: Vec<u8> = slices.iter().flat_map(|slice| slice.iter()).copied().collect();
        let written = octets.len();
        mangled.mangler.push(self.clock.now(), Transmit::Octets(octets.into()));
        Ok(written)
    }

    fn write_to_tcp(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let _order = self.in_order();
        let written = match slices {
            [one] => self.tcp.try_write(one)?,
            _ => self.tcp.try_write_vectored(slices)?,
        };
        self.record(Direction::ToTarget, || {
            let mut octets: Vec<u8> = Vec::with_capacity(written);
            for slice in slices {
                octets.extend_from_slice(&slice[..slice.len().min(written - octets.len())]);
            }
            What::Octets(octets.into())
        });
        Ok(written)
    }

    /// Carries out the mangler's actions that are due.
    ///
    /// # Errors
    /// The error of TCP; nothing is left to do then.
    pub(super) fn flush(&self) -> io::Result<Flushed> {
        let Some(mut mangled) = self.mangled() else { return Ok(Flushed::Idle) };
        let Mangled { mangler, unsent, reset } = &mut *mangled;
        while !*reset {
            if !unsent.is_empty() {
                match self.write_to_tcp(&[IoSlice::new(unsent)]) {
                    Ok(written) => unsent.advance(written),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flushed::Blocked),
                    Err(error) => {
                        unsent.clear();
                        mangler.discard();
                        return Err(error);
                    }
                }
                continue;
            }
            match mangler.poll(self.clock.now()) {
                None => return Ok(Flushed::Idle),
                Some(Transmit::Octets(octets)) => *unsent = octets,
                Some(Transmit::Fin) => self.finish_tcp()?,
                Some(Transmit::Reset) => {
                    self.reset_tcp();
                    *reset = true;
                }
            }
        }
        Ok(Flushed::Reset)
    }

    /// When there is something to [`flush`](Self::flush); at once where TCP took no more.
    pub(super) fn flush_timeout(&self) -> Option<Instant> {
        let mangled = self.mangled()?;
        if mangled.unsent.is_empty() { mangled.mangler.poll_timeout() } else { Some(Instant::ORIGIN) }
    }

    /// Waits until everything is with TCP.
    pub(super) async fn flushed(&self) -> io::Result<()> {
        loop {
            match (self.flush()?, self.flush_timeout()) {
                (Flushed::Blocked, _) => self.ready(Interest::WRITABLE).await?,
                (Flushed::Idle, Some(at)) => sleep_until(self.clock.to_tokio(at)).await,
                (Flushed::Idle, None) => return Ok(()),
                (Flushed::Reset, _) => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        }
    }

    fn mangled(&self) -> Option<MutexGuard<'_, Mangled>> {
        self.mangled.as_ref().map(|mangled| mangled.lock().unwrap_or_else(PoisonError::into_inner))
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
        self.flushed().await
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

    /// Closes this side's half, after everything that a mangler has.
    pub(super) fn finish(&self) -> io::Result<()> {
        let Some(mut mangled) = self.mangled() else { return self.finish_tcp() };
        mangled.mangler.push(self.clock.now(), Transmit::Fin);
        Ok(())
    }

    fn finish_tcp(&self) -> io::Result<()> {
        let _order = self.in_order();
        SockRef::from(&self.tcp).shutdown(Shutdown::Write)?;
        self.record_end(What::Fin);
        Ok(())
    }

    /// The connection is aborted when this is dropped: with a lingering time of zero, closing the
    /// socket sends RST.
    pub(super) fn reset(&self) {
        if let Some(mut mangled) = self.mangled() {
            mangled.unsent.clear();
            mangled.mangler.discard();
        }
        self.reset_tcp();
    }

    fn reset_tcp(&self) {
        // The connection is gone whether or not the socket could send RST.
        let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        self.record_end(What::Reset);
    }

    fn in_order(&self) -> Option<MutexGuard<'_, ()>> {
        self.log.as_ref().map(|log| log.order.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn record_end(&self, what: What) {
        if let Some(log) = &self.log {
            log.ended.store(true, Ordering::Relaxed);
        }
        self.record(Direction::ToTarget, || what);
    }

    fn record(&self, direction: Direction, what: impl FnOnce() -> What) {
        if let Some(log) = &self.log {
            log.track.record(self.clock.now(), direction, what());
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
