//! A TCP connection of a [`Device`](super::Device): non-blocking reads and writes, which are
//! recorded in a traffic log.

use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::clock::Clock;
use super::traffic_log::{Direction, EventContent, Track, TrafficLog};
use crate::connection::Transmit;
use crate::hostile::mangle::Mangler;
use crate::time::Instant;

/// One connection.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) tcp: TcpStream,
    clock: Clock,
    mangled: Option<Mutex<Mangled>>,
    log: Option<Log>,
}

/// Records a connection in a traffic log.
#[derive(Debug)]
struct Log {
    track: Track,
    /// The traffic log already shows how this side ended the connection.
    ended: AtomicBool,
    /// Locked from the start of each write until this write is recorded, and while a read is
    /// recorded. Without this lock, one thread could record an answer before another thread records
    /// the message that was answered.
    order: Mutex<()>,
}

/// The layer between the endpoint and TCP that mangles the sent bytes.
#[derive(Debug)]
struct Mangled {
    mangler: Mangler,
    /// The remaining bytes of a write of which TCP has accepted only a part.
    unsent: Bytes,
    /// The mangler has reset the connection.
    reset: bool,
}

/// The result of [`Stream::flush`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Nothing is due to be sent.
    Idle,
    /// TCP accepts no more bytes for now.
    Blocked,
    /// The mangler has reset the connection.
    Reset,
}

/// The side that opened the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    Here,
    Peer,
}

impl Stream {
    /// Takes over a connection, and turns off TCP's delay of small segments.
    pub(super) fn new(
        tcp: TcpStream,
        traffic: Option<&TrafficLog>,
        mangler: Option<Mangler>,
        clock: Clock,
        by: Opener,
    ) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        let log =
            traffic.map(|traffic| Log { track: traffic.track(), ended: AtomicBool::new(false), order: Mutex::new(()) });
        let mangled = mangler.map(|mangler| Mutex::new(Mangled { mangler, unsent: Bytes::new(), reset: false }));
        let stream = Stream { tcp, clock, mangled, log };
        if stream.log.is_some() {
            let (tester, target) = (stream.tcp.local_addr()?, stream.tcp.peer_addr()?);
            let direction = if by == Opener::Here { Direction::ToTarget } else { Direction::FromTarget };
            stream.record(direction, || EventContent::Connected { tester, target });
        }
        Ok(stream)
    }

    /// TCP's effective maximum segment size in bytes.
    pub(super) fn emss(&self) -> io::Result<u32> {
        SockRef::from(&self.tcp).tcp_mss()
    }

    /// Waits until the connection is readable or writable.
    async fn ready(&self, interest: Interest) -> io::Result<()> {
        self.tcp.ready(interest).await.map(|_| ())
    }

    /// Reads arrived bytes, at most the size of `buffer`. Returns 0 after the peer's FIN.
    ///
    /// # Errors
    /// `WouldBlock`, or the error of TCP.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut short = 0;
        let read = self.tcp.try_io(Interest::READABLE, || match (&*SockRef::from(&self.tcp)).read(buffer) {
            // The socket is empty now. Reporting `WouldBlock` to the runtime avoids a read that
            // would find nothing.
            Ok(octets) if octets > 0 && octets < buffer.len() => {
                short = octets;
                Err(io::ErrorKind::WouldBlock.into())
            }
            read => read,
        });
        let read = if short > 0 { Ok(short) } else { read };
        let _order = self.in_order();
        match &read {
            Ok(0) => self.record(Direction::FromTarget, || EventContent::Fin),
            Ok(octets) => {
                self.record(Direction::FromTarget, || EventContent::Octets(Bytes::copy_from_slice(&buffer[..*octets])));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.record(Direction::FromTarget, || EventContent::Reset),
        }
        read
    }

    /// Writes the bytes that TCP, or the mangler, accepts now.
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
            EventContent::Octets(octets.into())
        });
        Ok(written)
    }

    /// Sends the mangler's output that is due.
    ///
    /// # Errors
    /// The error of TCP. The mangler's remaining output is then discarded.
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

    /// Returns when the next call of [`flush`](Self::flush) is due. If TCP has accepted only a part
    /// of a write, the next call is due at once.
    pub(super) fn flush_timeout(&self) -> Option<Instant> {
        let mangled = self.mangled()?;
        if mangled.unsent.is_empty() { mangled.mangler.poll_timeout() } else { Some(Instant::ORIGIN) }
    }

    /// Waits until TCP has accepted all bytes.
    pub(super) async fn flushed(&self) -> io::Result<()> {
        loop {
            match (self.flush()?, self.flush_timeout()) {
                (Flushed::Blocked, _) => self.ready(Interest::WRITABLE).await?,
                (Flushed::Idle, at @ Some(_)) => self.clock.sleep_until(at).await,
                (Flushed::Idle, None) => return Ok(()),
                (Flushed::Reset, _) => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        }
    }

    fn mangled(&self) -> Option<MutexGuard<'_, Mangled>> {
        self.mangled.as_ref().map(|mangled| mangled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes all bytes. Waits while TCP accepts no bytes.
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

    /// Waits for bytes. Then reads arrived bytes, at most the size of `buffer`. Returns 0 after the
    /// peer's FIN.
    pub(super) async fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ready(Interest::READABLE).await?;
            match self.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// Closes this side's half of the connection. If bytes are still in the mangler,
    /// [`flush`](Self::flush) sends these bytes first and then closes this half.
    pub(super) fn finish(&self) -> io::Result<()> {
        let Some(mut mangled) = self.mangled() else { return self.finish_tcp() };
        mangled.mangler.push(self.clock.now(), Transmit::Fin);
        Ok(())
    }

    fn finish_tcp(&self) -> io::Result<()> {
        let _order = self.in_order();
        SockRef::from(&self.tcp).shutdown(Shutdown::Write)?;
        self.record_end(EventContent::Fin);
        Ok(())
    }

    /// Aborts the connection when this stream is dropped: with a linger time of zero, closing the
    /// socket sends RST.
    pub(super) fn reset(&self) {
        if let Some(mut mangled) = self.mangled() {
            mangled.unsent.clear();
            mangled.mangler.discard();
        }
        self.reset_tcp();
    }

    fn reset_tcp(&self) {
        // The connection is closed even if no RST could be sent.
        let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        self.record_end(EventContent::Reset);
    }

    fn in_order(&self) -> Option<MutexGuard<'_, ()>> {
        self.log.as_ref().map(|log| log.order.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn record_end(&self, content: EventContent) {
        if let Some(log) = &self.log {
            log.ended.store(true, Ordering::Relaxed);
        }
        self.record(Direction::ToTarget, || content);
    }

    fn record(&self, direction: Direction, content: impl FnOnce() -> EventContent) {
        if let Some(log) = &self.log {
            log.track.record(self.clock.now(), direction, content());
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.log.as_ref().is_some_and(|log| !log.ended.load(Ordering::Relaxed)) {
            // Closing the socket closes this side's half.
            self.record_end(EventContent::Fin);
        }
    }
}
