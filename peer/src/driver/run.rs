//! Connects one [`Connection`] and its service to one TCP stream.

use std::io;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep_until;

use super::clock::Clock;
use super::tcp_tester::{is_reset, reset};
use super::traffic_log::{Direction, EventContent, Track};
use crate::connection::{Connection, Settings, Transmit};
use crate::hostile::mangle::{Mangler, next_transmit};
use crate::service::{Service, deliver_events};

/// Maximum number of bytes in one read.
const READ_LEN: usize = 64 * 1024;

/// Prepares the stream: turns off TCP's delay of small segments, and stores TCP's EMSS in
/// `settings`.
pub(super) fn prepare(stream: &TcpStream, settings: &mut Settings) -> io::Result<()> {
    stream.set_nodelay(true)?;
    settings.emss = socket2::SockRef::from(stream).tcp_mss()?;
    Ok(())
}

/// Drives `connection` until it is over. When `stop` becomes true, the connection closes
/// gracefully.
///
/// This function takes only one [`Transmit`] from `connection` at a time. All further output stays
/// in the send queue of `connection`. A mangler, which changes sent bytes at random, can contain
/// more bytes. The service decides whether this function reads more bytes.
pub(super) async fn drive(
    mut stream: TcpStream,
    connection: &mut Connection,
    service: &mut (impl Service + ?Sized),
    clock: Clock,
    mut stop: watch::Receiver<bool>,
    mut mangler: Option<Mangler>,
    track: Option<Track>,
) {
    let mut record = Record { track, clock, ended: false };
    let mut buffer = vec![0; READ_LEN];
    let mut unsent = Bytes::new();
    let mut readable = true;
    let mut stopped = false;
    loop {
        deliver_events(clock.now(), connection, service);
        if connection.is_aborting() {
            unsent.clear();
        }
        if unsent.is_empty() {
            let now = clock.now();
            match next_transmit(now, || connection.poll_transmit(now), mangler.as_mut()) {
                Some(Transmit::Octets(octets)) => unsent = octets,
                Some(Transmit::Fin) => {
                    match stream.shutdown().await {
                        Ok(()) => record.end(EventContent::Fin),
                        Err(_) => connection.handle_reset(clock.now()),
                    }
                    continue;
                }
                Some(Transmit::Reset) => {
                    if mangler.is_some() {
                        // The mangler has possibly added this reset, so the connection has to be
                        // informed.
                        connection.handle_reset(clock.now());
                    }
                    deliver_events(clock.now(), connection, service);
                    // The connection is closed even if no RST could be sent.
                    let _ = reset(stream);
                    record.end(EventContent::Reset);
                    return;
                }
                None if connection.is_over() && mangler.as_ref().is_none_or(Mangler::is_idle) => return,
                None => {}
            }
        }
        let mangled = mangler.as_ref().filter(|_| unsent.is_empty()).and_then(Mangler::poll_timeout);
        let deadline = [connection.poll_timeout(), mangled].into_iter().flatten().min();
        let ready = service.is_ready(connection);
        let (mut reader, mut writer) = stream.split();
        tokio::select! {
            written = writer.write(&unsent), if !unsent.is_empty() => match written {
                Ok(octets) => {
                    record.add(Direction::ToTarget, || EventContent::Octets(unsent.slice(..octets)));
                    unsent.advance(octets);
                }
                Err(_) => {
                    unsent.clear();
                    mangler.iter_mut().for_each(Mangler::discard);
                    connection.handle_reset(clock.now());
                }
            },
            read = reader.read(&mut buffer), if readable && ready => match read {
                Ok(0) => {
                    readable = false;
                    record.add(Direction::FromTarget, || EventContent::Fin);
                    connection.handle_fin(clock.now());
                }
                Ok(octets) => {
                    record.add(Direction::FromTarget,
                        || EventContent::Octets(Bytes::copy_from_slice(&buffer[..octets])));
                    connection.handle_octets(clock.now(), &buffer[..octets]);
                }
                Err(error) => {
                    readable = false;
                    match is_reset(&error) {
                        true => record.add(Direction::FromTarget, || EventContent::Reset),
                        false => tracing::debug!(%error, "reading failed"),
                    }
                    mangler.iter_mut().for_each(Mangler::discard);
                    connection.handle_reset(clock.now());
                }
            },
            () = sleep_until(clock.to_tokio(deadline.unwrap_or_default())), if deadline.is_some() => {
                connection.handle_timeout(clock.now());
            }
            // An error means that all senders are gone, so no stop can follow.
            changed = stop.wait_for(|stop| *stop), if !stopped => {
                stopped = true;
                if changed.is_ok() {
                    connection.close(clock.now());
                }
            }
            else => return,
        }
    }
}

/// Records the stream's events in a traffic log, if there is one.
struct Record {
    track: Option<Track>,
    clock: Clock,
    ended: bool,
}

impl Record {
    fn add(&self, direction: Direction, content: impl FnOnce() -> EventContent) {
        if let Some(track) = &self.track {
            track.record(self.clock.now(), direction, content());
        }
    }

    /// Records how this side ended the connection.
    fn end(&mut self, content: EventContent) {
        self.ended = true;
        self.add(Direction::ToTarget, || content);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.ended {
            // Closing the socket closes this side's half.
            self.end(EventContent::Fin);
        }
    }
}
