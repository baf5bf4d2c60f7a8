//! The tester's side of one TCP connection to a target, over any kind of [`Link`](super::Link). It
//! sends and receives bytes, closes or resets the connection, and records all of this on the tape.

use std::net::SocketAddr;

use bytes::Bytes;

use super::link_error::LinkError;
use super::received::Received;
use super::tape::{Direction, Tape, What};
use super::tcp::TcpTester;
use super::virtual_link::VirtualTester;
use crate::time::Instant;

/// The tester's side of one TCP connection to the target.
#[derive(Debug)]
pub struct TesterConnection {
    end: End,
    number: u32,
    tape: Tape,
    tester: SocketAddr,
    target: SocketAddr,
    finished: bool,
    /// The result of each further `receive`, once the target has closed or the connection was
    /// reset.
    over: Option<Received>,
}

#[derive(Debug)]
enum End {
    Tcp(TcpTester),
    Virtual(VirtualTester),
}

impl TesterConnection {
    pub(super) fn from_tcp(end: TcpTester) -> Self {
        let (number, tape, tester, target) = (end.number, end.tape.clone(), end.tester, end.target);
        TesterConnection { end: End::Tcp(end), number, tape, tester, target, finished: false, over: None }
    }

    pub(super) fn from_virtual(end: VirtualTester) -> Self {
        let (number, tape, (tester, target)) = (end.number, end.tape.clone(), end.addresses());
        TesterConnection { end: End::Virtual(end), number, tape, tester, target, finished: false, over: None }
    }

    /// Sends bytes unchanged. They go in one write, and therefore in one TCP segment if they fit.
    ///
    /// # Errors
    /// The tester has closed or reset the connection. The connection was reset. Or the target
    /// accepted no bytes for the link's send time-out.
    pub async fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        if self.finished {
            return Err(LinkError::Finished);
        }
        if self.over == Some(Received::Reset) {
            return Err(LinkError::Reset);
        }
        let at = self.now();
        let mut sent = 0;
        let result = match &mut self.end {
            End::Tcp(end) => end.send(octets, &mut sent).await,
            End::Virtual(end) => end.send(octets).inspect(|()| sent = octets.len()),
        };
        if sent > 0 {
            let what = What::Octets(Bytes::copy_from_slice(&octets[..sent]));
            self.tape.record(at, self.number, Direction::ToTarget, what);
        }
        if let Err(LinkError::Reset) = result {
            self.saw_reset();
        }
        result
    }

    /// Waits until `deadline` for bytes, FIN or reset from the target. An event that has already
    /// arrived is returned even after the deadline.
    ///
    /// # Errors
    /// The operating system reported an error.
    pub async fn receive(&mut self, deadline: Instant) -> Result<Received, LinkError> {
        if let Some(over) = &self.over {
            return Ok(over.clone());
        }
        let received = match &mut self.end {
            End::Tcp(end) => end.receive(deadline).await?,
            End::Virtual(end) => end.receive(deadline).await,
        };
        match &received {
            Received::Octets(octets) => self.record(Direction::FromTarget, What::Octets(octets.clone())),
            Received::Fin => {
                self.record(Direction::FromTarget, What::Fin);
                self.over = Some(Received::Fin);
            }
            Received::Reset => self.saw_reset(),
            Received::TimedOut => {}
        }
        Ok(received)
    }

    /// Closes the tester's half of the connection (FIN). The tester can still receive bytes.
    ///
    /// # Errors
    /// The tester has already closed or reset the connection, or the connection was reset.
    pub async fn finish(&mut self) -> Result<(), LinkError> {
        if self.finished {
            return Err(LinkError::Finished);
        }
        self.finished = true;
        let result = match &mut self.end {
            End::Tcp(end) => end.finish().await,
            End::Virtual(end) => end.finish(),
        };
        match &result {
            Ok(()) => self.record(Direction::ToTarget, What::Fin),
            Err(LinkError::Reset) => self.saw_reset(),
            Err(_) => {}
        }
        result
    }

    /// Aborts the connection (RST). Nothing can be sent or received any more.
    ///
    /// # Errors
    /// The operating system reported an error.
    pub async fn reset(&mut self) -> Result<(), LinkError> {
        if self.over == Some(Received::Reset) {
            return Ok(());
        }
        self.finished = true;
        self.over = Some(Received::Reset);
        self.record(Direction::ToTarget, What::Reset);
        match &mut self.end {
            End::Tcp(end) => end.reset(),
            End::Virtual(end) => end.reset(),
        }
    }

    /// The current time on the link's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.end {
            End::Tcp(end) => end.now(),
            End::Virtual(end) => end.now(),
        }
    }

    /// The number of this connection on its link and its tape, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Addresses of the tester and of the target, in this order.
    #[must_use]
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.tester, self.target)
    }

    fn saw_reset(&mut self) {
        if self.over != Some(Received::Reset) {
            self.over = Some(Received::Reset);
            self.record(Direction::FromTarget, What::Reset);
        }
    }

    pub(super) fn record(&self, direction: Direction, what: What) {
        self.tape.record(self.now(), self.number, direction, what);
    }
}
