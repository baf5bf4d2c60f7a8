//! The tester's side of a connection over real TCP.

use core::time::Duration;
use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};

use super::clock::Clock;
use super::link_error::LinkError;
use super::received::Received;
use crate::time::Instant;

/// The tester's side of a TCP connection.
#[derive(Debug)]
pub(super) struct TcpTester {
    /// `None` after the tester has reset the connection.
    stream: Option<TcpStream>,
    pub(super) clock: Clock,
    send_timeout: Duration,
    buffer: BytesMut,
}

/// Maximum number of bytes in one read.
const READ_LEN: usize = 64 * 1024;
/// How long [`TcpTester::send_now`] waits for TCP. Without a wait, the runtime could not learn that
/// TCP accepts bytes again.
pub(super) const NOW: Duration = Duration::from_millis(1);

impl TcpTester {
    pub(super) fn new(stream: TcpStream, clock: Clock, send_timeout: Duration) -> Self {
        TcpTester { stream: Some(stream), clock, send_timeout, buffer: BytesMut::new() }
    }

    /// Sends `octets`. Sets `sent` to the number of bytes that TCP accepted, even if the send
    /// fails.
    pub(super) async fn send(&mut self, octets: &[u8], sent: &mut usize) -> Result<(), LinkError> {
        let Some(stream) = &mut self.stream else { return Err(LinkError::Finished) };
        while let Some(rest) = octets.get(*sent..).filter(|rest| !rest.is_empty()) {
            *sent += timeout(self.send_timeout, stream.write(rest))
                .await
                .map_err(|_| LinkError::SendTimeout { after: self.send_timeout })?
                .map_err(|error| while_sending("send", error))?;
        }
        Ok(())
    }

    /// Sends the bytes that TCP accepts now. Returns their number.
    pub(super) async fn send_now(&mut self, octets: &[u8]) -> Result<usize, LinkError> {
        let Some(stream) = &mut self.stream else { return Err(LinkError::Finished) };
        let mut sent = 0;
        while let Some(rest) = octets.get(sent..).filter(|rest| !rest.is_empty()) {
            match timeout(NOW, stream.write(rest)).await {
                Ok(accepted) => sent += accepted.map_err(|error| while_sending("send", error))?,
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Receives at most `most` bytes.
    pub(super) async fn receive(&mut self, deadline: Instant, most: usize) -> Result<Received, LinkError> {
        let Some(stream) = &mut self.stream else { return Ok(Received::Reset) };
        let mut stream = stream.take(most as u64);
        self.buffer.reserve(READ_LEN);
        // `timeout_at` polls the read first. Therefore bytes that have arrived are returned even if
        // the deadline has passed.
        match timeout_at(self.clock.to_tokio(deadline), stream.read_buf(&mut self.buffer)).await {
            Err(_) => Ok(Received::TimedOut),
            Ok(Ok(0)) => Ok(Received::Fin),
            Ok(Ok(_)) => Ok(Received::Octets(Bytes::copy_from_slice(&self.buffer.split()))),
            Ok(Err(error)) if is_reset(&error) => Ok(Received::Reset),
            Ok(Err(source)) => Err(LinkError::Io { doing: "receive", source }),
        }
    }

    pub(super) async fn finish(&mut self) -> Result<(), LinkError> {
        let Some(stream) = &mut self.stream else { return Err(LinkError::Finished) };
        stream.shutdown().await.map_err(|error| while_sending("close", error))
    }

    pub(super) fn reset(&mut self) -> Result<(), LinkError> {
        self.stream.take().map_or(Ok(()), reset)
    }

    /// Closes the socket of a connection that is over.
    pub(super) fn release(&mut self) {
        self.stream = None;
    }
}

/// Aborts a connection. With a linger time of zero, closing the socket sends RST.
pub(super) fn reset(stream: TcpStream) -> Result<(), LinkError> {
    let lingering = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    drop(stream);
    lingering.map_err(|source| LinkError::Io { doing: "reset", source })
}

/// Returns whether the error means that the peer or the network aborted the connection.
pub(super) fn is_reset(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut)
}

fn while_sending(doing: &'static str, source: io::Error) -> LinkError {
    if is_reset(&source) { LinkError::Reset } else { LinkError::Io { doing, source } }
}
