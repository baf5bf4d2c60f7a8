//! A PM Client in this process, for the virtual link. It queries a port mapper and connects to the
//! address in the answer, by SDP or by plain TCP.
//!
//! It acts like [`follow`](crate::driver::portmap::follow), which uses real TCP. There is no
//! application that requests a service: the tester chooses the service that the client queries.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::Bytes;

use super::network::{self, LATENCY};
use crate::hostile::Deviations;
use crate::portmap::{Client, ClientSettings, Query, QueryError, Resolution};
use crate::sdp::Role;
use crate::service::{DrivenConnection, PlainClient, SdpServer, SdpUser};
use crate::time::Instant;
use crate::workload::WorkloadError;

/// Maximum number of datagrams in flight to the tester. Further datagrams are lost.
const MAX_IN_FLIGHT: usize = 1 << 16;
/// The client's first AssocHandle. It is the same in each run.
const FIRST_HANDLE: u64 = 0x5eed_0000_0000_0001;
/// The client's connections come from the ports after this port.
const BELOW_PORTS: u16 = 40_000;
const QUERY_PORT: u16 = 33_331;
/// The tester's addresses get the ports after this port.
const BELOW_RESERVED_PORTS: u16 = 20_000;

/// A TCP connection that the client is opening.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    /// Time at which the SYN reaches the tester. If the tester refuses the attempt, this is the
    /// time at which the RST reaches the target.
    at: Instant,
    query: Query,
    from: SocketAddr,
    to: SocketAddr,
    sdp: bool,
    /// True for the second attempt of a query. The SDP Address has reset the first attempt.
    again: bool,
    refused: bool,
}

/// A datagram or a connection from the target to the tester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VirtualCall {
    /// A datagram to a UDP socket of the tester.
    Datagram { to: SocketAddr, from: SocketAddr, octets: Bytes },
    /// Connection `number` to an address on which the tester listens.
    Connection { number: u32, from: SocketAddr, to: SocketAddr },
}

/// The client, its traffic in flight, and the addresses that the tester listens on.
pub(super) struct PmClient {
    client: Client,
    sdp: SdpServer,
    listening: Vec<SocketAddr>,
    /// Number of addresses of the tester that are reserved, with or without a listener.
    reserved: u16,
    /// Datagrams to the client: time of arrival, sender, payload.
    to_target: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    /// Events for the tester, each with its time of arrival.
    calls: VecDeque<(Instant, VirtualCall)>,
    attempts: VecDeque<Attempt>,
    ports: u16,
    connections: u32,
}

impl PmClient {
    /// Creates a client with these deviations.
    pub(super) fn new(deviations: Deviations) -> Result<Self, WorkloadError> {
        let sdp = SdpServer::new(SdpUser::Echo, Role::Connecting, deviations.clone());
        drop(sdp.start(Instant::ORIGIN)?);
        let settings = ClientSettings { deviations, ..ClientSettings::default() };
        Ok(PmClient {
            client: Client::new(settings, FIRST_HANDLE),
            sdp,
            listening: Vec::new(),
            reserved: 0,
            to_target: VecDeque::new(),
            calls: VecDeque::new(),
            attempts: VecDeque::new(),
            ports: 0,
            connections: 0,
        })
    }

    /// Reserves a new address of the tester. If `listens` is false, connections to this address are
    /// refused.
    pub(super) fn reserve_address(&mut self, v6: bool, other: bool, listens: bool) -> SocketAddr {
        self.reserved += 1;
        let ip = if other { network::other_ip(v6) } else { network::tester_ip(v6) };
        let address = SocketAddr::new(ip, BELOW_RESERVED_PORTS.saturating_add(self.reserved));
        if listens {
            self.listening.push(address);
        }
        address
    }

    /// Queries the tester's port mapper for `service`, as if an application needed a connection to
    /// `service`.
    pub(super) fn query(&mut self, now: Instant, service: SocketAddr) -> Result<(), QueryError> {
        let connecting = self.next_address(service.is_ipv6());
        self.client
            .query(now, Query { mapper: network::tester_mapper(service.is_ipv6(), false), service, connecting })?;
        self.drain(now);
        Ok(())
    }

    fn next_address(&mut self, v6: bool) -> SocketAddr {
        self.ports += 1;
        SocketAddr::new(network::mapper(v6, false).ip(), BELOW_PORTS.saturating_add(self.ports))
    }

    /// Delivers a datagram of the tester at the time `arrival`. The datagram is lost if `to` is not
    /// the client's own address.
    pub(super) fn send(&mut self, arrival: Instant, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        if to == query_address(to.is_ipv6()) {
            self.to_target.push_back((arrival, from, octets.to_vec()));
        }
    }

    /// Returns when the next event at the target is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let datagram = self.to_target.front().map(|(at, ..)| *at);
        let attempt = self.attempts.iter().map(|attempt| attempt.at).min();
        [datagram, attempt, self.client.deadline()].into_iter().flatten().min()
    }

    /// Handles all events that are due at `now`. Returns the target's side of each new connection,
    /// with its number.
    pub(super) fn handle(&mut self, now: Instant) -> Vec<(u32, Box<dyn DrivenConnection>)> {
        while let Some((_, from, octets)) = self.to_target.pop_front_if(|(at, ..)| *at <= now) {
            self.client.handle_datagram(now, from, &octets);
        }
        if self.client.deadline().is_some_and(|deadline| deadline <= now) {
            self.client.handle_timeout(now);
        }
        self.drain(now);
        let mut opened = Vec::new();
        while let Some(at) = self.attempts.iter().position(|attempt| attempt.at <= now) {
            let Some(attempt) = self.attempts.remove(at) else { break };
            opened.extend(self.attempt(now, attempt));
        }
        opened
    }

    fn attempt(&mut self, now: Instant, attempt: Attempt) -> Option<(u32, Box<dyn DrivenConnection>)> {
        let Attempt { query, from, to, sdp, .. } = attempt;
        if attempt.refused {
            if sdp && !attempt.again {
                let resolution = self.client.reset(&query, to);
                let from = self.next_address(query.service.is_ipv6());
                self.connect(now, query, from, resolution, true);
            }
            return None;
        }
        if !self.listening.contains(&to) {
            self.attempts.push_back(Attempt { at: now + LATENCY, refused: true, ..attempt });
            return None;
        }
        // `new` has created a socket, so the RNIC has enough memory for a socket.
        let connection: Box<dyn DrivenConnection> =
            if sdp { Box::new(self.sdp.start(now).ok()?) } else { Box::new(PlainClient::new()) };
        let number = self.connections;
        self.connections += 1;
        self.calls.push_back((now, VirtualCall::Connection { number, from, to }));
        Some((number, connection))
    }

    /// Sends the client's pending datagrams, and connects to the addresses in the answers that the
    /// client received.
    fn drain(&mut self, now: Instant) {
        while let Some(datagram) = self.client.poll_datagram() {
            let v6 = datagram.to.is_ipv6();
            let from = if datagram.from_other_port { network::mapper(v6, true) } else { query_address(v6) };
            let is_to_mapper =
                [false, true].iter().any(|other_port| datagram.to == network::tester_mapper(v6, *other_port));
            if is_to_mapper && self.calls.len() < MAX_IN_FLIGHT {
                let call = VirtualCall::Datagram { to: datagram.to, from, octets: Bytes::from(datagram.octets) };
                self.calls.push_back((now + LATENCY, call));
            }
        }
        while let Some(resolved) = self.client.poll_event() {
            self.connect(now, resolved.query, resolved.query.connecting, resolved.resolution, false);
        }
        while self.client.poll_discarded().is_some() {}
    }

    fn connect(&mut self, now: Instant, query: Query, from: SocketAddr, resolution: Resolution, again: bool) {
        let sdp = matches!(resolution, Resolution::Sdp { .. });
        let at = now + LATENCY;
        self.attempts.push_back(Attempt { at, query, from, to: resolution.address(), sdp, again, refused: false });
    }

    /// Returns when the next event for the tester arrives.
    pub(super) fn due(&self) -> Option<Instant> {
        self.calls.iter().map(|(at, _)| *at).min()
    }

    /// Returns the next event for the tester. If two events arrive at the same time, returns the
    /// event that was sent first.
    pub(super) fn take(&mut self) -> Option<VirtualCall> {
        let due = self.due()?;
        let index = self.calls.iter().position(|(at, _)| *at == due)?;
        self.calls.remove(index).map(|(_, call)| call)
    }
}

/// Returns the address that the client's datagrams come from.
fn query_address(v6: bool) -> SocketAddr {
    SocketAddr::new(network::mapper(v6, false).ip(), QUERY_PORT)
}
