//! The link inside the process: the target is this crate's own [`Connection`]s, and the clock is
//! virtual.
//!
//! Time stops unless the tester waits. During a wait the simulation jumps from one event to the
//! next (arriving bytes, or a deadline of a state machine). The wait ends with the awaited event or
//! at the tester's deadline. A minute of time-outs therefore costs microseconds, and all runs are
//! equal. The latency of each direction is [`VirtualLink::LATENCY`].

mod end;
mod network;
mod pm_client;
mod pm_server;
mod world;

use core::time::Duration;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

pub(super) use self::end::VirtualTester;
use self::pm_client::PmClient;
pub(super) use self::pm_client::VirtualCall;
use self::pm_server::PmServer;
use self::world::{Machine, World, lock};
use super::link_error::LinkError;
use super::tape::Tape;
use crate::connection::{Connection, Settings};
use crate::hostile::Deviations;
use crate::hostile::mangle::Mangling;
use crate::mpa::PrivateDataTooLong;
use crate::portmap::{AskError, Server, ServerSettings, Table};
use crate::service::{Echo, EchoClient, RpingClient, RpingServer, SdpServer, Served, Service, WithService};
use crate::time::Instant;
use crate::verbs::RnicError;
use crate::workload::WorkloadError;

/// Makes the target's side of a new connection. `None` if it cannot.
type Factory = Box<dyn FnMut(Instant) -> Option<Box<dyn Served>> + Send + Sync>;

/// A link to a target that runs in this process.
pub struct VirtualLink {
    world: Arc<Mutex<World>>,
    tape: Tape,
    factory: Factory,
    mangling: Option<Mangling>,
    connections: u32,
    /// The target opens connections, each time that the tester requests one.
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
    /// Bytes in flight in one direction to a side that does not read. At this number the sender has
    /// to wait, as it would with a full TCP window.
    pub const WINDOW: usize = network::WINDOW;

    /// Address of the target's port mapper, or another port of the same host if `aside` is set.
    #[must_use]
    pub fn mapper(v6: bool, aside: bool) -> SocketAddr {
        network::mapper(v6, aside)
    }

    /// Address of the tester's port mapper, or another port of the same host if `aside` is set.
    pub(super) fn tester_mapper(v6: bool, aside: bool) -> SocketAddr {
        network::tester_mapper(v6, aside)
    }

    /// A target that calls `factory` for the state machine and the service of each new connection.
    pub fn new(mut factory: impl FnMut(Instant) -> (Connection, Box<dyn Service>) + Send + Sync + 'static) -> Self {
        Self::serving(move |now| {
            let (connection, service) = factory(now);
            Some(Box::new(WithService { connection, service }))
        })
    }

    /// A target that calls `factory` for its side of each new connection. `None` means that the
    /// target has no memory for one.
    pub fn serving(factory: impl FnMut(Instant) -> Option<Box<dyn Served>> + Send + Sync + 'static) -> Self {
        let world = Arc::new(Mutex::new(World {
            now: Instant::ORIGIN,
            machines: BTreeMap::new(),
            pm_server: None,
            pm_client: None,
        }));
        VirtualLink {
            world,
            tape: Tape::default(),
            factory: Box::new(factory),
            mangling: None,
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

    /// The builtin responder with the echo service. `settings` include its deviations.
    #[must_use]
    pub fn echo(settings: Settings) -> Self {
        VirtualLink::new(move |now| (Connection::respond(now, settings.clone()), Box::new(Echo)))
    }

    /// The builtin responder with `rping -s`, on Queue Pairs of the software RNIC. `settings`
    /// include its deviations.
    ///
    /// # Errors
    /// The software RNIC cannot be opened.
    pub fn rping(settings: Settings) -> Result<Self, RnicError> {
        let server = RpingServer::new(settings)?;
        Ok(Self::serving(move |now| Some(Box::new(server.accept(now)))))
    }

    /// A target that uses an SDP socket for each connection. If the server's role is Connecting
    /// Peer, the target opens the connections.
    ///
    /// # Errors
    /// An SDP socket cannot be created.
    pub fn sdp(server: SdpServer) -> Result<Self, WorkloadError> {
        drop(server.start(Instant::ORIGIN)?);
        let target_opens = server.role == crate::sdp::Role::Connecting;
        let link = Self::serving(move |now| {
            let end = server.start(now).ok()?;
            Some(Box::new(end))
        });
        Ok(VirtualLink { target_opens, ..link })
    }

    /// Adds a PM Server (port mapper) at the target's addresses, UDP port 3935.
    #[must_use]
    pub fn with_mapper(self, settings: ServerSettings, table: Table) -> Self {
        lock(&self.world).pm_server = Some(PmServer::new(Server::new(settings, table)));
        self
    }

    /// A target with a PM Client. On [`Link::ask`](super::Link::ask) the client queries the
    /// tester's port mapper. Then the target connects to the address in the answer, with SDP or by
    /// plain TCP.
    ///
    /// # Errors
    /// An SDP socket for the target cannot be created.
    pub fn asking(deviations: Deviations) -> Result<Self, WorkloadError> {
        let link = Self::serving(|_| None);
        lock(&link.world).pm_client = Some(PmClient::new(deviations)?);
        Ok(VirtualLink { target_opens: true, ..link })
    }

    fn with_pm_client<R>(&self, look: impl FnOnce(Instant, &mut PmClient) -> R) -> Option<R> {
        let mut world = lock(&self.world);
        let now = world.now;
        world.pm_client.as_mut().map(|client| look(now, client))
    }

    /// See [`PmClient::place`]. `None` if the target has no PM Client.
    pub(super) fn place(&self, v6: bool, other: bool, listens: bool) -> Option<SocketAddr> {
        self.with_pm_client(|_, client| client.place(v6, other, listens))
    }

    /// Makes the target's PM Client query the port mapper for `service`.
    pub(super) fn ask(&self, service: SocketAddr) -> Result<(), AskError> {
        self.with_pm_client(|now, client| client.ask(now, service)).unwrap_or(Ok(()))
    }

    /// Sends a datagram of the tester's port mapper to the target.
    pub(super) fn answer(&self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        self.with_pm_client(|now, client| client.send(now + Self::LATENCY, from, to, octets));
    }

    /// The next datagram or connection from the target's PM Client. `None` if nothing arrives
    /// before `deadline`.
    pub(super) async fn next_call(&self, deadline: Instant) -> Option<VirtualCall> {
        tokio::task::yield_now().await;
        let mut world = lock(&self.world);
        loop {
            let due = world.pm_client.as_ref().and_then(PmClient::due);
            match (due, world.next()) {
                (Some(at), next) if at <= deadline.max(world.now) && next.is_none_or(|next| at < next) => {
                    world.now = world.now.max(at);
                    return world.pm_client.as_mut().and_then(PmClient::take);
                }
                (_, Some(next)) if next <= deadline => {
                    world.now = world.now.max(next);
                    world.happen();
                }
                _ => {
                    world.now = world.now.max(deadline);
                    return None;
                }
            }
        }
    }

    /// The tester's side of a connection that the PM Client opened.
    pub(super) fn taken(&self, number: u32, from: SocketAddr, to: SocketAddr) -> VirtualTester {
        VirtualTester { number, ends: (to, from), tape: self.tape.clone(), world: Arc::clone(&self.world) }
    }

    /// Connects to another address of the target, which its port mapper returned.
    pub(super) async fn connect_to(&mut self, address: SocketAddr) -> Result<VirtualTester, LinkError> {
        let from = tester_address(self.connections);
        let given = {
            let mut world = lock(&self.world);
            let now = world.now;
            world.pm_server.as_mut().and_then(|server| server.connected(now, from, address))
        };
        if address != Self::TARGET && given.is_none() {
            return Err(LinkError::Connect { address, source: io::ErrorKind::ConnectionRefused.into() });
        }
        self.connect().await
    }

    /// The address that the tester's next connection will come from.
    pub(super) fn next_address(&self) -> SocketAddr {
        tester_address(self.connections)
    }

    /// The address for a new UDP socket of the tester.
    pub(super) fn datagram_address(&mut self, v6: bool) -> SocketAddr {
        self.sockets = self.sockets.wrapping_add(1);
        SocketAddr::new(network::tester_ip(v6), FIRST_SOCKET.saturating_add(self.sockets))
    }

    /// Sends a datagram of the tester to the target's port mapper. Without a port mapper it is
    /// lost.
    pub(super) fn send_datagram(&mut self, from: SocketAddr, octets: &[u8]) {
        let mut world = lock(&self.world);
        let arrival = world.now + Self::LATENCY;
        if let Some(server) = &mut world.pm_server {
            server.to_target.push_back((arrival, from, octets.to_vec()));
        }
    }

    /// The next datagram to the tester's socket at `to`, with the sender's address. `None` if no
    /// datagram arrives before `deadline`.
    pub(super) async fn receive_datagram(&self, to: SocketAddr, deadline: Instant) -> Option<(SocketAddr, Bytes)> {
        tokio::task::yield_now().await;
        let mut world = lock(&self.world);
        loop {
            let due = world.pm_server.as_ref().and_then(|server| server.due(to));
            match (due, world.next()) {
                (Some(at), next) if at <= deadline && next.is_none_or(|next| at < next) => {
                    world.now = world.now.max(at);
                    return world.pm_server.as_mut().and_then(|server| server.take(to));
                }
                (_, Some(next)) if next <= deadline => {
                    world.now = world.now.max(next);
                    world.happen();
                }
                _ => {
                    world.now = world.now.max(deadline);
                    return None;
                }
            }
        }
    }

    /// The builtin initiator, which [sends one message and then echoes](EchoClient). The tester
    /// [accepts](super::Link::accept) its connection.
    ///
    /// # Errors
    /// The settings require an enhanced Request, and the private data is too long for one.
    pub fn echo_client(settings: Settings) -> Result<Self, PrivateDataTooLong> {
        Connection::initiate(Instant::ORIGIN, settings.clone())?;
        Ok(Self::new(move |now| {
            // The same settings succeeded above, so the fallback is never used.
            let connection =
                Connection::initiate(now, settings.clone()).unwrap_or_else(|_| Connection::stream(Settings::default()));
            (connection, Box::new(EchoClient::default()))
        }))
    }

    /// The builtin initiator with `rping -c`. The tester accepts its connection too.
    ///
    /// # Errors
    /// The software RNIC cannot be opened.
    pub fn rping_client(settings: Settings) -> Result<Self, RnicError> {
        let client = RpingClient::new(settings)?;
        Ok(Self::serving(move |now| Some(Box::new(client.connect(now)))))
    }

    pub(super) async fn connect(&mut self) -> Result<VirtualTester, LinkError> {
        self.open(false).await
    }

    pub(super) async fn accept(&mut self) -> Result<VirtualTester, LinkError> {
        self.open(true).await
    }

    async fn open(&mut self, accepted: bool) -> Result<VirtualTester, LinkError> {
        // Every wait yields to the runtime once. Otherwise a caller could not be cancelled, because
        // virtual time never blocks.
        tokio::task::yield_now().await;
        let mut world = lock(&self.world);
        if world.machines.len() >= Self::MAX_CONNECTIONS {
            let source = io::Error::new(io::ErrorKind::ConnectionRefused, "too many connections are open");
            return Err(LinkError::Connect { address: Self::TARGET, source });
        }
        let arrival = world.now + Self::LATENCY;
        world.run_until(arrival, None);
        let Some(served) = (self.factory)(arrival) else {
            let source = io::Error::other("the target has no memory for a connection");
            return Err(LinkError::Connect { address: Self::TARGET, source });
        };
        drop(world);
        let port = accepted.then(|| Self::TARGET.port());
        Ok(self.begin(served, port))
    }

    /// Waits until the target opens a new TCP connection to `port` of the tester, to resume a
    /// suspended SDP connection. `None` if it does not before `deadline`.
    pub(super) async fn await_reconnection(&mut self, port: u16, deadline: Instant) -> Option<VirtualTester> {
        tokio::task::yield_now().await;
        let mut world = lock(&self.world);
        let mut served = world.reconnecting(port, deadline)?;
        let now = world.now;
        served.handle_reconnected(now);
        drop(world);
        Some(self.begin(served, Some(port)))
    }

    /// Begins a connection. If the target opens it, `port` is the tester's port.
    fn begin(&mut self, served: Box<dyn Served>, port: Option<u16>) -> VirtualTester {
        let number = self.connections;
        let mangler = self.mangling.as_ref().map(|mangling| mangling.mangler(number.into()));
        let mut world = lock(&self.world);
        world.machines.insert(number, Machine::new(served, mangler));
        world.serve(number);
        let back = world.now + Self::LATENCY;
        world.run_until(back, None);
        drop(world);
        self.connections += 1;
        let (from, at) = (tester_address(number), Self::TARGET);
        let ends = match port {
            None => (from, at),
            Some(port) => (SocketAddr::new(from.ip(), port), SocketAddr::new(at.ip(), from.port())),
        };
        VirtualTester { number, ends, tape: self.tape.clone(), world: Arc::clone(&self.world) }
    }

    pub(super) fn now(&self) -> Instant {
        lock(&self.world).now
    }

    pub(super) async fn pause(&self, until: Instant) {
        tokio::task::yield_now().await;
        lock(&self.world).run_until(until, None);
    }

    /// Lets time pass until `ready` returns true, at most until `deadline`. Returns the last result
    /// of `ready`. Events at the target that are already due happen first.
    pub async fn until(&self, deadline: Instant, mut ready: impl FnMut() -> bool + Send) -> bool {
        tokio::task::yield_now().await;
        loop {
            if ready() {
                return true;
            }
            let mut world = lock(&self.world);
            match world.next().filter(|at| *at <= deadline.max(world.now)) {
                Some(at) => {
                    world.now = world.now.max(at);
                    world.happen();
                }
                None => {
                    world.now = world.now.max(deadline);
                    return false;
                }
            }
        }
    }

    pub(super) fn tape(&self) -> &Tape {
        &self.tape
    }
}

impl fmt::Debug for VirtualLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualLink").field("connections", &self.connections).finish_non_exhaustive()
    }
}

/// The tester's UDP sockets get the ports after this one.
const FIRST_SOCKET: u16 = 33_332;

fn tester_address(number: u32) -> SocketAddr {
    // Dynamic ports (RFC 6335), one for each connection. They repeat after 16,384 connections.
    let port = 49_152 + u16::try_from(number % 16_384).unwrap_or(0);
    SocketAddr::new(network::tester_ip(false), port)
}
