//! The tester's side of one TCP connection to a target, over any kind of [`Link`](super::Link). It
//! sends and receives bytes, closes or resets the connection, and records all of this in the
//! traffic log.

use std::net::SocketAddr;

use bytes::Bytes;

use super::fragments::Fragments;
use super::link_error::LinkError;
use super::received::Received;
use super::tcp_tester::TcpTester;
use super::traffic_log::{Direction, EventContent, TrafficLog};
use super::virtual_link::tester::VirtualTester;
use super::wire::WireTester;
use crate::reject::reject_if;
use crate::time::Instant;

/// The tester's side of one TCP connection to the target.
#[derive(Debug)]
pub struct TesterConnection {
    side: Side,
    number: u32,
    traffic: TrafficLog,
    tester: SocketAddr,
    target: SocketAddr,
    finished: bool,
    /// The result of each further `receive`, after the target has closed or the connection was
    /// reset.
    over: Option<Received>,
}

/// The implementation of one kind of link.
#[derive(Debug)]
pub(super) enum Side {
    Tcp(TcpTester),
    Virtual(VirtualTester),
    Wire(WireTester),
}

impl TesterConnection {
    /// Creates the tester's side of connection `number`, with the addresses of the tester and of
    /// the target.
    pub(super) fn new(
        side: Side,
        number: u32,
        traffic: &TrafficLog,
        (tester, target): (SocketAddr, SocketAddr),
    ) -> Self {
        TesterConnection { side, number, traffic: traffic.clone(), tester, target, finished: false, over: None }
    }

    /// Sends bytes unchanged. The first write passes all bytes to TCP. Therefore the bytes leave in
    /// one TCP segment if they fit in a segment.
    ///
    /// # Errors
    /// - The tester has already closed or reset the connection.
    /// - The target has reset the connection.
    /// - The target accepts no bytes within the send time-out of the link.
    pub async fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        reject_if(self.finished, LinkError::Finished)?;
        reject_if(self.over == Some(Received::Reset), LinkError::Reset)?;
        let at = self.now();
        let mut sent = 0;
        let result = match &mut self.side {
            Side::Tcp(side) => side.send(octets, &mut sent).await,
            Side::Virtual(side) => side.send(octets).inspect(|()| sent = octets.len()),
            Side::Wire(side) => side.send(octets, &mut sent).await,
        };
        if sent > 0 {
            let content = EventContent::Octets(Bytes::copy_from_slice(&octets[..sent]));
            self.traffic.record(at, self.number, Direction::ToTarget, content);
        }
        if let Err(LinkError::Reset) = result {
            self.saw_reset();
        }
        result
    }

    /// Sends the bytes that TCP accepts now. Returns their number, which is 0 if the target's window
    /// is closed.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send), except the time-out.
    pub async fn send_now(&mut self, octets: &[u8]) -> Result<usize, LinkError> {
        reject_if(self.finished, LinkError::Finished)?;
        reject_if(self.over == Some(Received::Reset), LinkError::Reset)?;
        let at = self.now();
        let result = match &mut self.side {
            Side::Tcp(side) => side.send_now(octets).await,
            Side::Virtual(side) => side.send_now(octets),
            Side::Wire(side) => side.send_now(octets).await,
        };
        match &result {
            Ok(0) => {}
            Ok(sent) => {
                let content = EventContent::Octets(Bytes::copy_from_slice(&octets[..*sent]));
                self.traffic.record(at, self.number, Direction::ToTarget, content);
            }
            Err(LinkError::Reset) => self.saw_reset(),
            Err(_) => {}
        }
        result
    }

    /// Gives bytes to the tester's TCP, which does not send them yet. Then
    /// [`send_segment`](Self::send_segment) sends them in segments that the caller chooses, and
    /// [`send_withheld`](Self::send_withheld) ends the send. The traffic log has the bytes from the
    /// time of this call.
    ///
    /// # Errors
    /// - [`LinkError::NoSegments`]: the link uses the TCP of the operating system.
    /// - The tester has already closed or reset the connection.
    /// - The target has reset the connection.
    /// - The bytes do not fit into the target's window within the send time-out of the link.
    pub async fn withhold(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        reject_if(self.finished, LinkError::Finished)?;
        reject_if(self.over == Some(Received::Reset), LinkError::Reset)?;
        let at = self.now();
        let result = match &mut self.side {
            Side::Tcp(_) => Err(LinkError::NoSegments),
            Side::Virtual(side) => side.withhold(octets),
            Side::Wire(side) => side.withhold(octets).await,
        };
        match &result {
            // The target may answer before the traffic log could have all bytes of its stream. For
            // the monitor, an answer must not come before its request.
            Ok(()) => {
                let content = EventContent::Octets(Bytes::copy_from_slice(octets));
                self.traffic.record(at, self.number, Direction::ToTarget, content);
            }
            Err(LinkError::Reset) => self.saw_reset(),
            Err(_) => {}
        }
        result
    }

    /// Sends one TCP segment. `begin` is the offset of its first byte, counted from the first
    /// withheld byte. A negative offset is in the bytes that were sent before: such a segment is a
    /// retransmission. `octets` are the bytes of the segment. If they differ from the withheld or
    /// sent bytes, the traffic log does not have them. If `fragments` is set, IP fragments carry the
    /// segment. The virtual link has no IP: the correct target gets such a segment as any other.
    ///
    /// # Errors
    /// The same errors as [`withhold`](Self::withhold).
    pub async fn send_segment(
        &mut self,
        begin: i64,
        octets: &[u8],
        fragments: Option<Fragments>,
    ) -> Result<(), LinkError> {
        reject_if(self.over == Some(Received::Reset), LinkError::Reset)?;
        let result = match &mut self.side {
            Side::Tcp(_) => Err(LinkError::NoSegments),
            Side::Virtual(side) => side.send_segment(begin, octets, fragments.is_some()),
            Side::Wire(side) => side.send_segment(begin, octets, fragments),
        };
        if let Err(LinkError::Reset) = result {
            self.saw_reset();
        }
        result
    }

    /// Ends a send that [`withhold`](Self::withhold) began. Sends the bytes that no segment had.
    /// From now on, TCP chooses the segments.
    ///
    /// # Errors
    /// The same errors as [`withhold`](Self::withhold).
    pub async fn send_withheld(&mut self) -> Result<(), LinkError> {
        let result = match &mut self.side {
            Side::Tcp(_) => Err(LinkError::NoSegments),
            Side::Virtual(side) => side.send_withheld(),
            Side::Wire(side) => side.send_withheld(),
        };
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
        self.receive_at_most(deadline, usize::MAX).await
    }

    /// Does the same as [`receive`](Self::receive), but reads at most `most` bytes. The other bytes
    /// stay in the receive buffer, so they keep TCP's window small. `most` is at least 1.
    ///
    /// # Errors
    /// The operating system reported an error.
    pub async fn receive_at_most(&mut self, deadline: Instant, most: usize) -> Result<Received, LinkError> {
        if let Some(over) = &self.over {
            return Ok(over.clone());
        }
        let received = match &mut self.side {
            Side::Tcp(side) => side.receive(deadline, most).await?,
            Side::Virtual(side) => side.receive(deadline, most).await,
            Side::Wire(side) => side.receive(deadline, most).await?,
        };
        match &received {
            Received::Octets(octets) => self.record(Direction::FromTarget, EventContent::Octets(octets.clone())),
            Received::Fin => {
                self.record(Direction::FromTarget, EventContent::Fin);
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
        reject_if(self.finished, LinkError::Finished)?;
        self.finished = true;
        let result = match &mut self.side {
            Side::Tcp(side) => side.finish().await,
            Side::Virtual(side) => side.finish(),
            Side::Wire(side) => side.finish(),
        };
        match &result {
            Ok(()) => self.record(Direction::ToTarget, EventContent::Fin),
            Err(LinkError::Reset) => self.saw_reset(),
            Err(_) => {}
        }
        result
    }

    /// Aborts the connection (RST). After this call, the tester can send and receive nothing on the
    /// connection.
    ///
    /// # Errors
    /// The operating system reported an error.
    pub async fn reset(&mut self) -> Result<(), LinkError> {
        if self.over == Some(Received::Reset) {
            return Ok(());
        }
        self.finished = true;
        self.over = Some(Received::Reset);
        self.record(Direction::ToTarget, EventContent::Reset);
        match &mut self.side {
            Side::Tcp(side) => side.reset(),
            Side::Virtual(side) => side.reset(),
            Side::Wire(side) => side.reset(),
        }
    }

    /// Releases the socket of the connection. On the virtual link, also releases the target's side.
    /// Does nothing if the tester can still send or receive.
    pub fn release(&mut self) {
        if self.finished && self.over.is_some() {
            match &mut self.side {
                Side::Tcp(side) => side.release(),
                Side::Virtual(side) => side.release(),
                Side::Wire(side) => side.release(),
            }
        }
    }

    /// Returns the current time on the link's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.side {
            Side::Tcp(side) => side.clock.now(),
            Side::Virtual(side) => side.now(),
            Side::Wire(side) => side.clock.now(),
        }
    }

    /// Returns the number of this connection on its link and in its traffic log, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the addresses of the tester and of the target, in this order.
    #[must_use]
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.tester, self.target)
    }

    fn saw_reset(&mut self) {
        if self.over != Some(Received::Reset) {
            self.over = Some(Received::Reset);
            self.record(Direction::FromTarget, EventContent::Reset);
        }
    }

    /// Records that `by` opened the connection.
    pub(super) fn record_opened(&self, by: Direction) {
        self.record(by, EventContent::Connected { tester: self.tester, target: self.target });
    }

    fn record(&self, direction: Direction, content: EventContent) {
        self.traffic.record(self.now(), self.number, direction, content);
    }
}
