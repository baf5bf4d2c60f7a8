//! The connections of the tester's own TCP. All functions return at once.

use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer, State};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpEndpoint};

use super::address::WireAddress;
use super::device::ShapedDevice;
use super::ethernet::EthernetInterface;
use super::flow::Flow;
use super::segment::{divide, max_payload};
use super::shaper::FlowKey;
use crate::driver::clock::Clock;
use crate::driver::device::random_seed;
use crate::driver::fragments::Fragments;
use crate::driver::received::Received;
use crate::time::Instant;

/// Size in bytes of the buffer for bytes that the target has not acknowledged.
const SEND_BUFFER: usize = 128 * 1024;
/// Default size in bytes of the buffer for received bytes.
const RECEIVE_BUFFER: usize = 128 * 1024;
/// Maximum size in bytes of the buffer for received bytes.
const MAX_RECEIVE_BUFFER: usize = 16 << 20;
/// Maximum number of bytes in one [`Received`] value.
const READ_LEN: usize = 64 * 1024;
/// Maximum number of bytes in a segment that fragments carry. An IP packet has at most 65,535 bytes,
/// and its headers have at most 60.
const MAX_SEGMENT: usize = 65_475;
/// Maximum number of connections, with those that the tester no longer uses.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum number of connections in TIME-WAIT that the tester no longer uses. TCP would answer a
/// further FIN on an older connection with a reset.
const MAX_TIME_WAIT: usize = 64;
/// For this time, the target may close a connection that the tester no longer uses. Then TCP resets
/// the connection. Linux has the same limit by default (`tcp_fin_timeout`).
const ABANDONED_TIME: Duration = Duration::from_secs(60);
/// Longest time between two polls if the tester no longer uses some connections.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest time between two polls for timers.
const MIN_DELAY: Duration = Duration::from_millis(1);
/// The dynamic ports (RFC 6335 section 6).
const FIRST_PORT: u16 = 49_152;
const PORTS: u16 = 16_384;

/// How a connection is opened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ConnectOptions {
    /// The tester's port. `None` means the next free port.
    pub(super) local_port: Option<u16>,
    /// The sequence number of the SYN. `None` means a random number.
    pub(super) first_sequence: Option<u32>,
    /// Size in bytes of the buffer for received bytes.
    pub(super) receive_buffer: Option<u32>,
}

/// When the next poll is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextPoll {
    /// Further frames wait in the interface.
    AtOnce,
    /// When a frame arrives, or after this time.
    Later(Option<Duration>),
    /// Never, because the interface has ended.
    Never,
}

/// Why a connection accepts no bytes.
#[derive(Debug)]
pub(super) enum SendFailure {
    /// The connection was reset.
    Reset,
    /// The interface has ended, or does not send the frame.
    Io(io::Error),
}

/// A connection of the tester.
#[derive(Debug)]
struct Connection {
    key: FlowKey,
    /// Whether the target has closed its half.
    has_fin: bool,
    /// Bytes that the tester has not read. smoltcp discards them at the end of TIME-WAIT, so they
    /// are here from the start of TIME-WAIT.
    unread: Vec<u8>,
    /// Since when the tester no longer uses the connection.
    abandoned: Option<Instant>,
}

/// The tester's own TCP with its interface and its connections.
pub(super) struct Engine {
    device: ShapedDevice,
    interface: Interface,
    sockets: SocketSet<'static>,
    connections: HashMap<SocketHandle, Connection>,
    address: WireAddress,
    clock: Clock,
    next_port: u16,
    /// Identification of the next IP packet that is divided into fragments.
    next_packet: u16,
}

impl Engine {
    pub(super) fn new(ethernet: Box<dyn EthernetInterface>, address: WireAddress) -> Self {
        let clock = Clock::start();
        let mut device = ShapedDevice::new(ethernet);
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(address.ethernet())));
        let seed = random_seed();
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, since(clock));
        interface.update_ip_addrs(|addresses| {
            for address in [Some(address.cidr()), address.link_local()].into_iter().flatten() {
                // The list has room for two addresses.
                let _ = addresses.push(address);
            }
        });
        let routes = interface.routes_mut();
        // The table of routes is empty, so it has room for a route.
        let _ = match address.gateway() {
            Some(IpAddr::V4(gateway)) => routes.add_default_ipv4_route(gateway),
            Some(IpAddr::V6(gateway)) => routes.add_default_ipv6_route(gateway),
            None => Ok(None),
        };
        // Two runs should not use the same ports, because the target may still have the connections
        // of the first run.
        let [a, b, c, d, ..] = seed.to_be_bytes();
        Engine {
            device,
            interface,
            sockets: SocketSet::new(Vec::new()),
            connections: HashMap::new(),
            address,
            clock,
            next_port: FIRST_PORT + u16::from_be_bytes([a, b]) % PORTS,
            next_packet: u16::from_be_bytes([c, d]),
        }
    }

    /// Processes the received frames and the timers, and sends the frames that are due.
    pub(super) fn poll(&mut self) -> NextPoll {
        self.device.begin();
        let now = since(self.clock);
        self.interface.poll(now, &mut self.device, &mut self.sockets);
        self.update_connections();
        if self.device.check().is_err() {
            return NextPoll::Never;
        }
        if self.device.has_more() {
            return NextPoll::AtOnce;
        }
        let delay = self.interface.poll_delay(now, &self.sockets);
        let delay = delay.map(|delay| Duration::from_micros(delay.total_micros()).max(MIN_DELAY));
        let has_abandoned = self.connections.values().any(|connection| connection.abandoned.is_some());
        NextPoll::Later([delay, has_abandoned.then_some(CHECK_INTERVAL)].into_iter().flatten().min())
    }

    /// Updates the connections after a poll, and removes those that are over.
    fn update_connections(&mut self) {
        let now = self.clock.now();
        let mut over = Vec::new();
        let mut waiting = Vec::new();
        for (handle, connection) in &mut self.connections {
            let socket = self.sockets.get_mut::<Socket<'static>>(*handle);
            let state = socket.state();
            connection.has_fin |= matches!(state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait);
            if state == State::TimeWait {
                while let Ok(1..) = socket.recv(|octets| {
                    connection.unread.extend_from_slice(octets);
                    (octets.len(), octets.len())
                }) {}
            }
            let Some(since) = connection.abandoned else { continue };
            let is_late = now.saturating_duration_since(since) > ABANDONED_TIME;
            match state {
                // If the connection still has a remote endpoint, its reset is not sent yet.
                State::Closed if socket.remote_endpoint().is_none() || is_late => over.push(*handle),
                State::Closed => {}
                State::TimeWait => waiting.push((since, *handle)),
                // The tester does not read any more, so it must not acknowledge further bytes.
                _ if is_late || socket.can_recv() => socket.abort(),
                _ => {}
            }
        }
        if let Some(excess) = waiting.len().checked_sub(MAX_TIME_WAIT) {
            waiting.sort_unstable();
            over.extend(waiting.into_iter().take(excess).map(|(_, handle)| handle));
        }
        over.into_iter().for_each(|handle| self.remove(handle));
    }

    fn remove(&mut self, handle: SocketHandle) {
        if let Some(connection) = self.connections.remove(&handle) {
            self.device.shaper.close(&connection.key);
            self.sockets.remove(handle);
        }
    }

    /// Returns the address of the tester's next connection.
    pub(super) fn next_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), self.free_port().unwrap_or(self.next_port))
    }

    fn free_port(&self) -> Option<u16> {
        let is_free = |port: &u16| self.connections.values().all(|connection| connection.key.0.port() != *port);
        let begin = self.next_port - FIRST_PORT;
        (0..PORTS).map(|step| FIRST_PORT + (begin + step) % PORTS).find(is_free)
    }

    /// Starts to connect. Returns the connection, and its addresses.
    pub(super) fn connect(
        &mut self,
        target: SocketAddr,
        options: ConnectOptions,
    ) -> io::Result<(SocketHandle, FlowKey)> {
        self.device.check()?;
        if !self.address.reaches(target.ip()) {
            let why = format!("it is not in the subnet of {}, and there is no gateway to it", self.address.ip());
            return Err(io::Error::new(io::ErrorKind::HostUnreachable, why));
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            return Err(io::Error::other(format!("the tester has {MAX_CONNECTIONS} connections")));
        }
        let port = match options.local_port {
            Some(port) => port,
            None => {
                let port = self.free_port().ok_or_else(|| io::Error::other("no port is free"))?;
                self.next_port = FIRST_PORT + (port - FIRST_PORT + 1) % PORTS;
                port
            }
        };
        // Without the flow label and the scope of an IPv6 socket address, which frames do not have.
        let key = (SocketAddr::new(self.address.ip(), port), SocketAddr::new(target.ip(), target.port()));
        if self.connections.values().any(|connection| connection.key == key) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let chosen = options.receive_buffer.map(|octets| usize::try_from(octets).unwrap_or(usize::MAX));
        // With an empty buffer, the target could never send.
        let received = chosen.unwrap_or(RECEIVE_BUFFER).clamp(1, MAX_RECEIVE_BUFFER);
        let mut socket = Socket::new(SocketBuffer::new(vec![0; received]), SocketBuffer::new(vec![0; SEND_BUFFER]));
        socket.set_nagle_enabled(false);
        let (local, remote) = (IpEndpoint::from(key.0), IpEndpoint::from(key.1));
        socket.connect(self.interface.context(), remote, local).map_err(io::Error::other)?;
        let handle = self.sockets.add(socket);
        self.connections.insert(handle, Connection { key, has_fin: false, unread: Vec::new(), abandoned: None });
        self.device.shaper.open(key, Flow::new(options.first_sequence));
        Ok((handle, key))
    }

    fn socket(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut::<Socket<'static>>(handle)
    }

    /// Returns whether the connection is established. Returns `None` while the target has not
    /// answered, and an error if it refuses the connection.
    pub(super) fn connected(&mut self, handle: SocketHandle) -> Option<io::Result<()>> {
        if let Err(error) = self.device.check() {
            return Some(Err(error));
        }
        match self.socket(handle).state() {
            State::Listen | State::SynSent | State::SynReceived => None,
            State::Closed => Some(Err(io::ErrorKind::ConnectionRefused.into())),
            _ => Some(Ok(())),
        }
    }

    /// Gives bytes to TCP. Returns the number of bytes that TCP accepted, or `None` if its buffer is
    /// full.
    pub(super) fn write(&mut self, handle: SocketHandle, octets: &[u8]) -> Option<Result<usize, SendFailure>> {
        if let Err(error) = self.device.check() {
            return Some(Err(SendFailure::Io(error)));
        }
        if self.flow(handle).is_some_and(|flow| flow.is_withholding()) {
            // The segments with these bytes would be kept back, too.
            return Some(Err(SendFailure::Io(still_withheld())));
        }
        let Ok(len) = self.socket(handle).send_slice(octets) else { return Some(Err(SendFailure::Reset)) };
        if let Some(flow) = self.flow(handle) {
            flow.written(len);
        }
        (len > 0).then_some(Ok(len))
    }

    fn flow(&mut self, handle: SocketHandle) -> Option<&mut Flow> {
        let key = self.connections.get(&handle)?.key;
        self.device.shaper.flow(&key)
    }

    /// Reads what has arrived, at most `most` bytes. Returns `None` if nothing has arrived.
    pub(super) fn read(&mut self, handle: SocketHandle, most: usize) -> Option<io::Result<Received>> {
        let connection = self.connections.get_mut(&handle)?;
        if !connection.unread.is_empty() {
            let len = connection.unread.len().min(most);
            return Some(Ok(Received::Octets(connection.unread.drain(..len).collect())));
        }
        let has_fin = connection.has_fin;
        let socket = self.socket(handle);
        if socket.can_recv() {
            let mut octets = vec![0; socket.recv_queue().min(READ_LEN).min(most)];
            let len = socket.recv_slice(&mut octets).unwrap_or(0);
            octets.truncate(len);
            return Some(Ok(Received::Octets(Bytes::from(octets))));
        }
        if has_fin {
            return Some(Ok(Received::Fin));
        }
        if socket.may_recv() {
            return self.device.check().err().map(Err);
        }
        match socket.recv(|_| (0, ())) {
            Err(RecvError::Finished) => Some(Ok(Received::Fin)),
            _ => Some(Ok(Received::Reset)),
        }
    }

    /// Withholds bytes: gives them to TCP, and keeps back the segments that TCP sends. Returns
    /// `None` if TCP has not sent all earlier bytes yet, or if the bytes do not fit into the window.
    pub(super) fn withhold(&mut self, handle: SocketHandle, octets: &[u8]) -> Option<Result<(), SendFailure>> {
        if let Err(error) = self.device.check() {
            return Some(Err(SendFailure::Io(error)));
        }
        let socket = self.socket(handle);
        if !socket.may_send() {
            return Some(Err(SendFailure::Reset));
        }
        if octets.len() > socket.send_capacity() {
            let why = format!("expected at most {} bytes, found {}", socket.send_capacity(), octets.len());
            return Some(Err(SendFailure::Io(io::Error::new(io::ErrorKind::InvalidInput, why))));
        }
        if socket.send_capacity() - socket.send_queue() < octets.len() {
            return None;
        }
        let flow = self.flow(handle)?;
        if flow.is_withholding() {
            return Some(Err(SendFailure::Io(still_withheld())));
        }
        if !flow.can_withhold(octets.len()) {
            return None;
        }
        flow.withhold(octets);
        match self.socket(handle).send_slice(octets) {
            Ok(_) => Some(Ok(())),
            Err(_) => Some(Err(SendFailure::Reset)),
        }
    }

    /// Sends a segment, see [`Flow::segment`]. If `fragments` is set, IP fragments carry the segment.
    pub(super) fn send_segment(
        &mut self,
        handle: SocketHandle,
        begin: i64,
        octets: &[u8],
        fragments: Option<Fragments>,
    ) -> Result<(), SendFailure> {
        if self.socket(handle).state() == State::Closed {
            return Err(SendFailure::Reset);
        }
        let fits = max_payload(self.device.mtu(), self.address.ip().is_ipv4());
        let most = fragments.map_or(fits, |_| MAX_SEGMENT);
        if octets.len() > most {
            let why = format!("expected a segment of at most {most} bytes on this interface, found {}", octets.len());
            return Err(SendFailure::Io(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let Some(flow) = self.flow(handle) else { return Err(SendFailure::Reset) };
        let (Some(frame), tcp) = (flow.segment(begin, octets), flow.tcp_offset()) else {
            return Err(SendFailure::Reset);
        };
        let frames = match fragments {
            Some(fragments) => {
                self.next_packet = self.next_packet.wrapping_add(1);
                divide(&frame, tcp, fragments, self.next_packet)
            }
            None => vec![frame],
        };
        frames.iter().try_for_each(|frame| self.device.send(frame)).map_err(SendFailure::Io)
    }

    /// Ends a withheld send. Sends the bytes that no segment had.
    pub(super) fn release(&mut self, handle: SocketHandle) -> Result<(), SendFailure> {
        let most = max_payload(self.device.mtu(), self.address.ip().is_ipv4());
        let frames = self.flow(handle).map(|flow| flow.release(most)).unwrap_or_default();
        if self.socket(handle).state() == State::Closed {
            return Err(SendFailure::Reset);
        }
        frames.iter().try_for_each(|frame| self.device.send(frame)).map_err(SendFailure::Io)
    }

    /// Closes the tester's half of the connection, after the end of a withheld send.
    pub(super) fn finish(&mut self, handle: SocketHandle) -> Result<(), SendFailure> {
        self.release(handle)?;
        self.socket(handle).close();
        Ok(())
    }

    /// Resets the connection. The tester no longer uses it.
    pub(super) fn reset(&mut self, handle: SocketHandle) {
        let now = self.clock.now();
        if let Some(connection) = self.connections.get_mut(&handle) {
            connection.abandoned = Some(now);
            self.socket(handle).abort();
        }
    }

    /// Closes a connection that the tester no longer uses. If the tester has not read all bytes, or
    /// withholds bytes, resets the connection.
    pub(super) fn abandon(&mut self, handle: SocketHandle) {
        let now = self.clock.now();
        let is_withholding = self.flow(handle).is_some_and(|flow| flow.is_withholding());
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        connection.abandoned = Some(now);
        let socket = self.sockets.get_mut::<Socket<'static>>(handle);
        match socket.state() {
            // TCP answers a late SYN of the target with a reset, because it has no such connection.
            State::Listen | State::SynSent | State::SynReceived => self.remove(handle),
            State::Closed | State::TimeWait => {}
            _ if is_withholding || socket.can_recv() => socket.abort(),
            _ => socket.close(),
        }
    }

    /// Resets all connections that are established and not over.
    pub(super) fn reset_all(&mut self) {
        let handles: Vec<SocketHandle> = self.connections.keys().copied().collect();
        for handle in handles {
            let state = self.socket(handle).state();
            if !matches!(state, State::Closed | State::SynSent | State::SynReceived | State::TimeWait) {
                self.reset(handle);
            }
        }
    }
}

fn still_withheld() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the previous send is still withheld")
}

/// Returns the time on the clock of smoltcp.
fn since(clock: Clock) -> smoltcp::time::Instant {
    let micros = clock.now().as_nanos() / 1000;
    smoltcp::time::Instant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
