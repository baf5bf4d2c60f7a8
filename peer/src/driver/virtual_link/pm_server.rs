//! A PM Server in this process, for the virtual link, and the datagrams in flight in both
//! directions.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::Bytes;

use super::network::{LATENCY, mapper};
use crate::portmap::Server;
use crate::time::Instant;

/// Maximum number of datagrams in flight to the tester. Further datagrams are lost.
const MAX_IN_FLIGHT: usize = 1 << 16;

/// The server, and its datagrams in flight.
pub(super) struct PmServer {
    pub(super) server: Server,
    /// Datagrams to the server: time of arrival, sender, payload.
    pub(super) to_target: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    /// Datagrams to the tester: time of arrival, destination, sender, payload.
    to_tester: VecDeque<(Instant, SocketAddr, SocketAddr, Bytes)>,
}

impl PmServer {
    pub(super) fn new(server: Server) -> Self {
        PmServer { server, to_target: VecDeque::new(), to_tester: VecDeque::new() }
    }

    /// Returns when the next event at the server is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.to_target.front().map(|(at, ..)| *at).into_iter().chain(self.server.deadline()).min()
    }

    /// Handles all events that are due at `now`.
    pub(super) fn handle(&mut self, now: Instant) {
        while let Some((_, from, octets)) = self.to_target.pop_front_if(|(at, ..)| *at <= now) {
            self.server.handle_datagram(now, from, &octets);
            while let Some(datagram) = self.server.poll_datagram() {
                let source = mapper(from.is_ipv6(), datagram.from_other_port);
                if self.to_tester.len() < MAX_IN_FLIGHT {
                    let octets = Bytes::from(datagram.octets);
                    self.to_tester.push_back((now + LATENCY, datagram.to, source, octets));
                }
            }
        }
        if self.server.deadline().is_some_and(|deadline| deadline <= now) {
            self.server.handle_timeout(now);
        }
        while self.server.poll_event().is_some() {}
    }

    /// Returns when the next datagram for this socket arrives.
    pub(super) fn due(&self, to: SocketAddr) -> Option<Instant> {
        self.to_tester.iter().find(|(_, other, ..)| *other == to).map(|(at, ..)| *at)
    }

    /// Returns the next datagram for this socket, with the sender's address.
    pub(super) fn take(&mut self, to: SocketAddr) -> Option<(SocketAddr, Bytes)> {
        let index = self.to_tester.iter().position(|(_, other, ..)| *other == to)?;
        self.to_tester.remove(index).map(|(_, _, from, octets)| (from, octets))
    }
}
