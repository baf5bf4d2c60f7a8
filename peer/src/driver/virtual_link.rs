//! The link to a target in this process. The target consists of this crate's own [`Connection`]s,
//! and the clock is virtual.
//!
//! Time passes only while the tester waits. During a wait the simulation jumps from one event
//! (arriving bytes, or a deadline of a state machine) to the next event. The wait ends with the
//! awaited event or at the tester's deadline. Therefore a minute of time-outs takes only
//! microseconds of real time, and all runs have equal results. The latency of each direction is
//! [`VirtualLink::LATENCY`].

mod network;
mod pm_client;
mod pm_server;
mod reassembly;
mod simulation;
pub(super) mod tester;

use core::time::Duration;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

pub(super) use self::network::tester_mapper;
use self::pm_client::{PmClient, VirtualCall};
use self::pm_server::PmServer;
use self::reassembly::Reassembly;
use self::simulation::{Simulation, lock};
use self::tester::VirtualTester;
use super::call::Call;
use super::link_error::LinkError;
use super::tester::{Side, TesterConnection};
use super::traffic_log::TrafficLog;
use crate::connection::{Connection, Settings};
use crate::hostile::mangle::Mangling;
use crate::hostile::{Deviations, ReassemblyConduct, hook};
use crate::mpa::PrivateDataTooLong;
use crate::portmap::{QueryError, Server, ServerSettings, Table};
use crate::service::{DrivenConnection, Echo, EchoClient, RpingClient, RpingServer, SdpServer, Service, WithService};
use crate::time::Instant;
use crate::verbs::RnicError;
use crate::workload::WorkloadError;

/// Creates the target's side of a new connection. Returns `None` if the target has no memory for
/// the connection.
type Factory = Box<dyn FnMut(Instant) -> Option<Box<dyn DrivenConnection>> + Send + Sync>;

/// A link to a target that runs in this process.
pub struct VirtualLink {
    simulation: Arc<Mutex<Simulation>>,
    pub(super) traffic: TrafficLog,
    factory: Factory,
    mangling: Option<Mangling>,
    /// The deviations of the target's TCP.
    conduct: ReassemblyConduct,
    /// Sequence number of the tester's first byte on the connections that are opened later.
    pub(super) first_sequence: Option<u32>,
    /// Limit of the tester's unread bytes on the connections that the tester opens.
    window: usize,
    connections: u32,
    /// True if the target, not the tester, opens the connections. The target opens one connection
    /// for each request of the tester.
    pub(super) target_opens: bool,
    /// Number of UDP sockets that the tester has opened.
    sockets: u16,
}

impl VirtualLink {
    /// Latency of each direction.
    pub const LATENCY: Duration = network::LATENCY;
    /// The target's address for TCP connections.
    pub const TARGET: SocketAddr = network::TARGET;
    /// Maximum number of connections that are open at the same time.
    pub const MAX_CONNECTIONS: usize = 1024;
    /// Limit of the unread bytes in one direction. At this limit the sender has to wait, like a TCP
    /// sender with a full window. The last write before the wait can exceed the limit.
    pub const WINDOW: usize = network::WINDOW;

    /// Returns the address of the target's port mapper. If `other_port` is set, the address has a
    /// port that no port mapper uses.
    #[must_use]
    pub fn mapper(v6: bool, other_port: bool) -> SocketAddr {
        network::mapper(v6, other_port)
    }

    /// Creates a target that calls `factory` for the state machine and the service of each new
    /// connection.
    pub fn new(mut factory: impl FnMut(Instant) -> (Connection, Box<dyn Service>) + Send + Sync + 'static) -> Self {
        Self::serving(move |now| {
            let (connection, service) = factory(now);
            Some(Box::new(WithService { connection, service }))
        })
    }

    /// Creates a target that calls `factory` for its side of each new connection. `None` means that
    /// the target has no memory for another connection.
    pub fn serving(factory: impl FnMut(Instant) -> Option<Box<dyn DrivenConnection>> + Send + Sync + 'static) -> Self {
        VirtualLink {
            simulation: Arc::default(),
            traffic: TrafficLog::default(),
            factory: Box::new(factory),
            mangling: None,
            conduct: ReassemblyConduct::default(),
            first_sequence: None,
            window: Self::WINDOW,
            connections: 0,
            target_opens: false,
            sockets: 0,
        }
    }

    /// Mangles the bytes that the target sends.
    #[must_use]
    pub fn mangled(mut self, mangling: Mangling) -> Self {
        self.mangling = Some(mangling);
        self
    }

    /// Makes the target's TCP commit these deviations. The functions that get [`Settings`] do this
    /// themselves.
    #[must_use]
    pub fn deviating(mut self, deviations: &Deviations) -> Self {
        self.conduct = hook::reassembly(deviations);
        self
    }

    /// See [`Link::set_receive_buffer`](super::Link::set_receive_buffer).
    pub(super) fn set_receive_buffer(&mut self, octets: u32) {
        // With an empty buffer, the target could never send.
        self.window = usize::try_from(octets.max(1)).unwrap_or(usize::MAX);
    }

    /// Creates the builtin responder with the echo service. `settings` include its deviations.
    #[must_use]
    pub fn echo(settings: Settings) -> Self {
        let deviations = settings.deviations.clone();
        let link = VirtualLink::new(move |now| (Connection::respond(now, settings.clone()), Box::new(Echo)));
        link.deviating(&deviations)
    }

    /// Creates the builtin responder with `rping -s`, on Queue Pairs of the software RNIC.
    /// `settings` include its deviations.
    ///
    /// # Errors
    /// The software RNIC cannot be opened.
    pub fn rping(settings: Settings) -> Result<Self, RnicError> {
        let deviations = settings.deviations.clone();
        let server = RpingServer::new(settings)?;
        Ok(Self::serving(move |now| Some(Box::new(server.accept(now)))).deviating(&deviations))
    }

    /// Creates a target that uses an SDP socket for each connection. If the server's role is
    /// Connecting Peer, the target opens the connections.
    ///
    /// # Errors
    /// An SDP socket cannot be created.
    pub fn sdp(server: SdpServer) -> Result<Self, WorkloadError> {
        drop(server.start(Instant::ORIGIN)?);
        let target_opens = server.role == crate::sdp::Role::Connecting;
        let link = Self::serving(move |now| Some(Box::new(server.start(now).ok()?)));
        Ok(VirtualLink { target_opens, ..link })
    }

    /// Adds a PM Server (port mapper) at the target's addresses, UDP port 3935.
    #[must_use]
    pub fn with_mapper(self, settings: ServerSettings, table: Table) -> Self {
        lock(&self.simulation).pm_server = Some(PmServer::new(Server::new(settings, table)));
        self
    }

    /// Creates a target with a PM Client. On [`Link::query`](super::Link::query) the client queries
    /// the tester's port mapper. Then the target connects to the address in the answer, with SDP or
    /// by plain TCP.
    ///
    /// # Errors
    /// An SDP socket for the target cannot be created.
    pub fn with_port_mapper_client(deviations: Deviations) -> Result<Self, WorkloadError> {
        let link = Self::serving(|_| None);
        lock(&link.simulation).pm_client = Some(PmClient::new(deviations)?);
        Ok(VirtualLink { target_opens: true, ..link })
    }

    fn with_pm_client<R>(&self, look: impl FnOnce(Instant, &mut PmClient) -> R) -> Option<R> {
        let mut simulation = lock(&self.simulation);
        let now = simulation.now;
        simulation.pm_client.as_mut().map(|client| look(now, client))
    }

    /// See [`PmClient::reserve_address`]. Returns `None` if the target has no PM Client.
    pub(super) fn reserve_address(&self, v6: bool, other: bool, listens: bool) -> Option<SocketAddr> {
        self.with_pm_client(|_, client| client.reserve_address(v6, other, listens))
    }

    /// Makes the target's PM Client query the port mapper for `service`.
    pub(super) fn query(&self, service: SocketAddr) -> Result<(), QueryError> {
        self.with_pm_client(|now, client| client.query(now, service)).unwrap_or(Ok(()))
    }

    /// Sends a datagram of the tester's port mapper to the target.
    pub(super) fn answer(&self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        self.with_pm_client(|now, client| client.send(now + Self::LATENCY, from, to, octets));
    }

    /// Returns the next datagram or connection from the target's PM Client. Returns `None` if
    /// nothing arrives before `deadline`.
    pub(super) async fn next_call(&self, deadline: Instant) -> Option<Call> {
        tokio::task::yield_now().await;
        let mut simulation = lock(&self.simulation);
        let latest = deadline.max(simulation.now);
        let arrived = simulation.run_until_arrival(deadline, latest, |simulation| simulation.pm_client.as_ref()?.due());
        let call = simulation.pm_client.as_mut().filter(|_| arrived).and_then(PmClient::take)?;
        Some(match call {
            VirtualCall::Datagram { to, from, octets } => Call::Datagram { to, from, octets },
            VirtualCall::Connection { number, from, to } => {
                Call::Connection { to, connection: Box::new(self.tester_side(number, (to, from))) }
            }
        })
    }

    /// Returns the tester's side of a connection, with the addresses of the tester and of the
    /// target.
    fn tester_side(&self, number: u32, addresses: (SocketAddr, SocketAddr)) -> TesterConnection {
        let side = VirtualTester::new(number, Arc::clone(&self.simulation));
        TesterConnection::new(Side::Virtual(side), number, &self.traffic, addresses)
    }

    /// Connects to another address of the target, which its port mapper returned.
    pub(super) async fn connect_to(&mut self, address: SocketAddr) -> Result<TesterConnection, LinkError> {
        let from = tester_address(self.connections);
        let assignment = {
            let mut simulation = lock(&self.simulation);
            let now = simulation.now;
            simulation.pm_server.as_mut().and_then(|pm| pm.server.handle_connection(now, from, address))
        };
        if address != Self::TARGET && assignment.is_none() {
            return Err(LinkError::Connect { address, source: io::ErrorKind::ConnectionRefused.into() });
        }
        self.open(false).await
    }

    /// Returns the address that the tester's next connection will come from.
    pub(super) fn next_address(&self) -> SocketAddr {
        tester_address(self.connections)
    }

    /// Returns the address for a new UDP socket of the tester.
    pub(super) fn datagram_address(&mut self, v6: bool) -> SocketAddr {
        self.sockets = self.sockets.wrapping_add(1);
        SocketAddr::new(network::tester_ip(v6), FIRST_SOCKET.saturating_add(self.sockets))
    }

    /// Sends a datagram of the tester to the target's port mapper. Without a port mapper the
    /// datagram is lost.
    pub(super) fn send_datagram(&mut self, from: SocketAddr, octets: &[u8]) {
        let mut simulation = lock(&self.simulation);
        let arrival = simulation.now + Self::LATENCY;
        if let Some(server) = &mut simulation.pm_server {
            server.to_target.push_back((arrival, from, octets.to_vec()));
        }
    }

    /// Returns the next datagram to the tester's socket at `to`, with the sender's address. Returns
    /// `None` if no datagram arrives before `deadline`.
    pub(super) async fn receive_datagram(&self, to: SocketAddr, deadline: Instant) -> Option<(SocketAddr, Bytes)> {
        tokio::task::yield_now().await;
        let mut simulation = lock(&self.simulation);
        let due = |simulation: &Simulation| simulation.pm_server.as_ref()?.due(to);
        let arrived = simulation.run_until_arrival(deadline, deadline, due);
        simulation.pm_server.as_mut().filter(|_| arrived)?.take(to)
    }

    /// Creates the builtin initiator, which [sends one message and then echoes](EchoClient). The
    /// tester [accepts](super::Link::accept) its connection.
    ///
    /// # Errors
    /// The settings require an enhanced Request, and the private data is too long for an enhanced
    /// Request.
    pub fn echo_client(settings: Settings) -> Result<Self, PrivateDataTooLong> {
        Connection::initiate(Instant::ORIGIN, settings.clone())?;
        let deviations = settings.deviations.clone();
        let link = Self::new(move |now| {
            // `initiate` has succeeded with these settings above, so it succeeds again here.
            let connection =
                Connection::initiate(now, settings.clone()).unwrap_or_else(|_| Connection::stream(Settings::default()));
            (connection, Box::new(EchoClient::default()))
        });
        Ok(link.deviating(&deviations))
    }

    /// Creates the builtin initiator with `rping -c`. The tester [accepts](super::Link::accept) its
    /// connection.
    ///
    /// # Errors
    /// The software RNIC cannot be opened.
    pub fn rping_client(settings: Settings) -> Result<Self, RnicError> {
        let deviations = settings.deviations.clone();
        let client = RpingClient::new(settings)?;
        Ok(Self::serving(move |now| Some(Box::new(client.connect(now)))).deviating(&deviations))
    }

    /// Opens a connection. If `accepted` is set, the tester accepts the connection. Otherwise the
    /// target accepts the connection.
    pub(super) async fn open(&mut self, accepted: bool) -> Result<TesterConnection, LinkError> {
        // Each wait yields to the runtime once. Without this, the future of a caller could not be
        // cancelled, because waiting in virtual time never blocks.
        tokio::task::yield_now().await;
        let mut simulation = lock(&self.simulation);
        if simulation.machines.len() >= Self::MAX_CONNECTIONS {
            let source = io::Error::new(io::ErrorKind::ConnectionRefused, "too many connections are open");
            return Err(LinkError::Connect { address: Self::TARGET, source });
        }
        let arrival = simulation.now + Self::LATENCY;
        simulation.run_until(arrival);
        let Some(connection) = (self.factory)(arrival) else {
            let source = io::Error::other("the target has no memory for a connection");
            return Err(LinkError::Connect { address: Self::TARGET, source });
        };
        drop(simulation);
        let port = accepted.then(|| Self::TARGET.port());
        Ok(self.begin(connection, port))
    }

    /// Waits until the target opens a new TCP connection to `port` of the tester, to resume a
    /// suspended SDP connection. Returns `None` if the target opens no connection before
    /// `deadline`.
    pub(super) async fn await_reconnection(&mut self, port: u16, deadline: Instant) -> Option<TesterConnection> {
        tokio::task::yield_now().await;
        let mut simulation = lock(&self.simulation);
        let mut connection = simulation.reconnecting(port, deadline)?;
        let now = simulation.now;
        connection.handle_reconnected(now);
        drop(simulation);
        Some(self.begin(connection, Some(port)))
    }

    /// Begins a connection. If the target opens the connection, `port` is the tester's port.
    fn begin(&mut self, connection: Box<dyn DrivenConnection>, port: Option<u16>) -> TesterConnection {
        let number = self.connections;
        let mangler = self.mangling.as_ref().map(|mangling| mangling.mangler(number.into()));
        let window = if port.is_none() { self.window } else { Self::WINDOW };
        let reassembly = Reassembly::new(self.conduct, self.first_sequence, number);
        let mut simulation = lock(&self.simulation);
        simulation.open(number, connection, mangler, window, reassembly);
        let back = simulation.now + Self::LATENCY;
        simulation.run_until(back);
        drop(simulation);
        self.connections += 1;
        let (from, at) = (tester_address(number), Self::TARGET);
        let addresses = match port {
            None => (from, at),
            Some(port) => (SocketAddr::new(from.ip(), port), SocketAddr::new(at.ip(), from.port())),
        };
        self.tester_side(number, addresses)
    }

    pub(super) fn now(&self) -> Instant {
        lock(&self.simulation).now
    }

    pub(super) async fn pause(&self, until: Instant) {
        tokio::task::yield_now().await;
        lock(&self.simulation).run_until(until);
    }

    /// Lets time pass until `ready` returns true or `deadline` is reached. Returns the last result
    /// of `ready`. Events at the target that are already due happen even if `deadline` has passed.
    pub async fn until(&self, deadline: Instant, mut ready: impl FnMut() -> bool + Send) -> bool {
        tokio::task::yield_now().await;
        loop {
            if ready() {
                return true;
            }
            let mut simulation = lock(&self.simulation);
            let latest = deadline.max(simulation.now);
            if !simulation.step(latest) {
                return false;
            }
        }
    }
}

impl fmt::Debug for VirtualLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualLink").field("connections", &self.connections).finish_non_exhaustive()
    }
}

/// The tester's UDP sockets get the ports after this port.
const FIRST_SOCKET: u16 = 33_332;

fn tester_address(number: u32) -> SocketAddr {
    // Dynamic ports (RFC 6335), one for each connection. The ports repeat after 16,384 connections.
    let port = 49_152 + u16::try_from(number % 16_384).unwrap_or(0);
    SocketAddr::new(network::tester_ip(false), port)
}
