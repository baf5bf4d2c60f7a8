//! The software RNIC on this host's TCP, for an agent. For a hardware device, libibverbs and
//! librdmacm do the work of this module. No function here blocks: the loop that serves the control
//! connection also polls the sockets.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Type};
use weft_peer::driver::device::random_seed;
use weft_peer::memory::MemorySettings;
use weft_peer::{Instant, Settings};

use super::SoftDevice;
use super::socket::{Interest, Socket, emss};
use crate::Limits;
use crate::common::{kernel, not_found};
use crate::protocol::{Action, Address, Event, Failure, Object, Success};
use crate::serve::Backend;

/// Maximum number of bytes that are read at once.
const READ_SIZE: usize = 1 << 16;
/// Pause if the host lacks a resource. No connection is accepted during the pause.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Maximum backlog of a listener in TCP.
const BACKLOG: u32 = 1024;

/// A software RNIC whose connections use TCP of this host.
#[derive(Debug)]
pub struct SoftAgent {
    soft: SoftDevice,
    begin: std::time::Instant,
    listeners: BTreeMap<Object, Listener>,
    /// Resolved addresses of peers, by connection.
    resolved: BTreeMap<Object, SocketAddr>,
    sockets: Vec<Socket>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Listener {
    listener: TcpListener,
    /// Time until which the listener accepts no connection.
    pause: Option<Instant>,
}

impl SoftAgent {
    /// Returns a new RNIC, whose connections use `settings`.
    ///
    /// # Errors
    /// Fails if the RNIC cannot be created.
    pub fn new(settings: Settings, limits: Limits) -> Result<Self, Failure> {
        let memory = MemorySettings { stag_seed: random_seed(), ..MemorySettings::default() };
        let soft = SoftDevice::with_limits(settings, limits, memory).map_err(|why| Failure::of(why.to_string()))?;
        Ok(SoftAgent {
            soft,
            begin: std::time::Instant::now(),
            listeners: BTreeMap::new(),
            resolved: BTreeMap::new(),
            sockets: Vec::new(),
            buffer: vec![0; READ_SIZE],
        })
    }

    fn now(&self) -> Instant {
        Instant::ORIGIN + self.begin.elapsed()
    }

    fn listen(&mut self, address: &Address, port: u16, backlog: u32) -> Result<Success, Failure> {
        let failed = |why: io::Error| Failure { what: format!("cannot listen: {why}"), errno: why.raw_os_error() };
        let listener = bind(address.at(port)?, backlog).map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let action = Action::Listen { address: at.into(), port: at.port(), backlog };
        let done = self.soft.perform(self.now(), action)?;
        if let Success::Listener { listener: object, .. } = done {
            self.listeners.insert(object, Listener { listener, pause: None });
        }
        Ok(done)
    }

    fn drive(&mut self) {
        let now = self.now();
        for (object, Listener { listener, pause }) in &mut self.listeners {
            if pause.is_some_and(|until| now < until) {
                continue;
            }
            *pause = None;
            // If the limit of objects is reached, the agent accepts no connection. New connections
            // then wait in the queue of the TCP listener.
            while self.soft.has_room() {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
                        let endpoint = ready.and_then(|()| emss(&stream)).ok();
                        let endpoint = endpoint.and_then(|emss| self.soft.accept_stream_at(now, *object, emss));
                        // If a connection gets no endpoint, it is closed here. For example, a
                        // connection gets no endpoint if the peer has already closed it.
                        self.sockets.extend(endpoint.map(|endpoint| Socket::accepted(endpoint, stream)));
                    }
                    Err(why) if why.kind() == io::ErrorKind::WouldBlock => break,
                    Err(why) if is_connection_error(&why) => {}
                    Err(_) => {
                        *pause = Some(now + ACCEPT_PAUSE);
                        break;
                    }
                }
            }
        }
        for socket in &mut self.sockets {
            socket.drive(now, &mut self.buffer);
        }
        self.sockets.retain(Socket::is_needed);
    }
}

impl Backend for SoftAgent {
    fn perform(&mut self, action: Action) -> Result<Success, Failure> {
        let now = self.now();
        match action {
            Action::Listen { address, port, backlog } => self.listen(&address, port, backlog),
            Action::Resolve { ref address, port } => {
                let address = address.at(port)?;
                let done = self.soft.perform(now, action)?;
                if let Success::Connection { connection } = done {
                    self.resolved.insert(connection, address);
                }
                Ok(done)
            }
            Action::Connect(ref parameters) => {
                let connection = parameters.connection;
                let done = self.soft.perform(now, action)?;
                let address = self.resolved.remove(&connection).zip(self.soft.connecting(connection));
                let (address, endpoint) = address.ok_or_else(|| not_found(connection, "connection"))?;
                self.sockets.push(Socket::connect(endpoint, now, address));
                Ok(done)
            }
            Action::Destroy { object } => {
                let done = self.soft.perform(now, action)?;
                self.listeners.remove(&object);
                self.resolved.remove(&object);
                Ok(done)
            }
            Action::Device => {
                let mut done = self.soft.perform(now, action)?;
                if let Success::Device(device) = &mut done {
                    device.kernel = kernel();
                }
                Ok(done)
            }
            Action::Exit => {
                self.listeners.clear();
                self.soft.perform(now, action)
            }
            action => self.soft.perform(now, action),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        self.drive();
        std::iter::from_fn(|| self.soft.next_event()).map(|(_, event)| event).collect()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let room = self.soft.has_room();
        let listeners = self.listeners.values().filter(|listener| room && listener.pause.is_none());
        let listeners = listeners.map(|listener| listener.listener.as_fd());
        listeners.chain(self.sockets.iter().filter_map(|socket| socket.descriptor(Interest::Read))).collect()
    }

    fn write_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().filter_map(|socket| socket.descriptor(Interest::Write)).collect()
    }

    fn deadline(&self) -> Option<std::time::Instant> {
        let pauses = self.listeners.values().filter_map(|listener| listener.pause);
        let next = pauses.chain(self.sockets.iter().filter_map(Socket::deadline)).min()?;
        self.begin.checked_add(next.since_origin())
    }
}

fn bind(at: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    socket.listen(i32::try_from(backlog.clamp(1, BACKLOG)).unwrap_or(1))?;
    Ok(socket.into())
}

/// Returns whether the error concerns only the next connection, and not the listener.
fn is_connection_error(why: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(why.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
