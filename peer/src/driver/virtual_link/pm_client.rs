//! A PM Client in process, for the virtual link, and the connection that it opens where it was
//! sent: with SDP, or by plain TCP.
//!
//! It does what [`follow`](crate::driver::portmap::follow) does over real TCP. What is absent: a program
//! that wants a service; the tester decides which one is wanted.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::Bytes;

use super::network::{self, LATENCY};
use crate::hostile::Deviations;
use crate::portmap::{Ask, AskError, Client, ClientSettings, Resolution};
use crate::sdp::Role;
use crate::service::{PlainEnd, SdpServer, SdpUser, Served};
use crate::time::Instant;
use crate::workload::WorkloadError;

/// Datagrams on their way to the tester at most; more are lost.
const MOST: usize = 1 << 16;
/// Its first AssocHandle: the same in each run.
const FIRST_HANDLE: u64 = 0x5eed_0000_0000_0001;
/// The port below those that its connections come from, and the one that it asks from.
const BELOW_PORTS: u16 = 40_000;
const ASKS_FROM: u16 = 33_331;
/// The port below those where the tester listens.
const BELOW_PLACES: u16 = 20_000;

/// A TCP connection that is being opened.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    /// When its SYN is at the tester, or the reset back at the target.
    at: Instant,
    ask: Ask,
    from: SocketAddr,
    to: SocketAddr,
    sdp: bool,
    /// It is the second one of its question.
    again: bool,
    refused: bool,
}

/// What comes to the tester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::driver) enum VirtualCall {
    /// A datagram to a socket of the tester's.
    Datagram { to: SocketAddr, from: SocketAddr, octets: Bytes },
    /// A connection to a place where the tester listens; the number of its machine.
    Connection { number: u32, from: SocketAddr, to: SocketAddr },
}

/// The client, what is in flight, and where the tester is.
pub(super) struct PmClient {
    client: Client,
    sdp: SdpServer,
    listening: Vec<SocketAddr>,
    /// Places that were given out, whether or not somebody listens there.
    places: u16,
    /// When it arrives, who sent it, its octets.
    to_target: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    /// What has arrived, or will.
    calls: VecDeque<(Instant, VirtualCall)>,
    attempts: VecDeque<Attempt>,
    ports: u16,
    connections: u32,
}

impl PmClient {
    /// A client that deviates so.
    pub(super) fn new(deviations: Deviations) -> Result<Self, WorkloadError> {
        let sdp = SdpServer::new(SdpUser::Echo, Role::Connecting, deviations.clone());
        drop(sdp.start(Instant::ORIGIN)?);
        let settings = ClientSettings { deviations, ..ClientSettings::default() };
        Ok(PmClient {
            client: Client::new(settings, FIRST_HANDLE),
            sdp,
            listening: Vec::new(),
            places: 0,
            to_target: VecDeque::new(),
            calls: VecDeque::new(),
            attempts: VecDeque::new(),
            ports: 0,
            connections: 0,
        })
    }

    /// A new address of the tester's; nobody listens there, unless `listens`.
    pub(super) fn place(&mut self, v6: bool, other: bool, listens: bool) -> SocketAddr {
        self.places += 1;
        let ip = if other { network::other_ip(v6) } else { network::tester_ip(v6) };
        let place = SocketAddr::new(ip, BELOW_PLACES.saturating_add(self.places));
        if listens {
            self.listening.push(place);
        }
        place
    }

    /// Somebody wants a connection to `service`.
    pub(super) fn ask(&mut self, now: Instant, service: SocketAddr) -> Result<(), AskError> {
        let connecting = self.next_end(service.is_ipv6());
        self.client.ask(now, Ask { mapper: network::tester_mapper(service.is_ipv6(), false), service, connecting })?;
        self.drain(now);
        Ok(())
    }

    fn next_end(&mut self, v6: bool) -> SocketAddr {
        self.ports += 1;
        SocketAddr::new(network::mapper(v6, false).ip(), BELOW_PORTS.saturating_add(self.ports))
    }

    /// A datagram of the tester's, at `arrival`; nobody gets one that goes elsewhere.
    pub(super) fn send(&mut self, arrival: Instant, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        if to == asks_from(to.is_ipv6()) {
            self.to_target.push_back((arrival, from, octets.to_vec()));
        }
    }

    /// When something happens at the target next.
    pub(super) fn next(&self) -> Option<Instant> {
        let datagram = self.to_target.front().map(|(at, ..)| *at);
        let attempt = self.attempts.iter().map(|attempt| attempt.at).min();
        [datagram, attempt, self.client.deadline()].into_iter().flatten().min()
    }

    /// Lets all happen that is due at `now`; gives the machines of new connections, with their
    /// numbers.
    pub(super) fn handle(&mut self, now: Instant) -> Vec<(u32, Box<dyn Served>)> {
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

    fn attempt(&mut self, now: Instant, attempt: Attempt) -> Option<(u32, Box<dyn Served>)> {
        let Attempt { ask, from, to, sdp, .. } = attempt;
        if attempt.refused {
            if sdp && !attempt.again {
                let resolution = self.client.reset(&ask, to);
                let from = self.next_end(ask.service.is_ipv6());
                self.connect(now, ask, from, resolution, true);
            }
            return None;
        }
        if !self.listening.contains(&to) {
            self.attempts.push_back(Attempt { at: now + LATENCY, refused: true, ..attempt });
            return None;
        }
        // There was memory for one before.
        let served: Box<dyn Served> = if sdp { Box::new(self.sdp.start(now).ok()?) } else { Box::new(PlainEnd::new()) };
        let number = self.connections;
        self.connections += 1;
        self.calls.push_back((now, VirtualCall::Connection { number, from, to }));
        Some((number, served))
    }

    /// Sends the client's messages, and connects to the addresses that it got.
    fn drain(&mut self, now: Instant) {
        while let Some(datagram) = self.client.poll_datagram() {
            let v6 = datagram.to.is_ipv6();
            let from = if datagram.aside { network::mapper(v6, true) } else { asks_from(v6) };
            let somebody = [false, true].iter().any(|aside| datagram.to == network::tester_mapper(v6, *aside));
            if somebody && self.calls.len() < MOST {
                let call = VirtualCall::Datagram { to: datagram.to, from, octets: Bytes::from(datagram.octets) };
                self.calls.push_back((now + LATENCY, call));
            }
        }
        while let Some(resolved) = self.client.poll_event() {
            self.connect(now, resolved.ask, resolved.ask.connecting, resolved.resolution, false);
        }
        while self.client.poll_discarded().is_some() {}
    }

    fn connect(&mut self, now: Instant, ask: Ask, from: SocketAddr, resolution: Resolution, again: bool) {
        let sdp = matches!(resolution, Resolution::Sdp { .. });
        let at = now + LATENCY;
        self.attempts.push_back(Attempt { at, ask, from, to: resolution.address(), sdp, again, refused: false });
    }

    /// When the next call is there.
    pub(super) fn due(&self) -> Option<Instant> {
        self.calls.iter().map(|(at, _)| *at).min()
    }

    /// The next call; of two at the same time the one that was sent first.
    pub(super) fn take(&mut self) -> Option<VirtualCall> {
        let due = self.due()?;
        let index = self.calls.iter().position(|(at, _)| *at == due)?;
        self.calls.remove(index).map(|(_, call)| call)
    }
}

/// Where the client's datagrams come from.
fn asks_from(v6: bool) -> SocketAddr {
    SocketAddr::new(network::mapper(v6, false).ip(), ASKS_FROM)
}
