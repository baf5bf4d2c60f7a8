//! A PM Server on UDP sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::socket::{MAX_DATAGRAM_LEN, Role, Socket};
use crate::driver::clock::Clock;
use crate::driver::traffic_log::TrafficLog;
use crate::portmap::{Datagram, Server, ServerEvent, ServerSettings, Table};

/// Maximum number of events that wait for [`PmServer::next_event`]. Further events are dropped.
const EVENTS: usize = 4096;

/// A PM Server, which answers until it is dropped.
#[derive(Debug)]
pub struct PmServer {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    events: mpsc::Receiver<ServerEvent>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    machine: Mutex<Server>,
    events: mpsc::Sender<ServerEvent>,
    /// Notified when the server's deadline has possibly changed.
    changed: Notify,
}

impl PmServer {
    /// Answers on each of `addresses`. Port 0 picks a free port.
    ///
    /// # Errors
    /// One of the addresses cannot be bound.
    pub fn bind(
        addresses: &[SocketAddr],
        settings: ServerSettings,
        table: Table,
        traffic: Option<&TrafficLog>,
    ) -> io::Result<Self> {
        let clock = Clock::start();
        let (sender, events) = mpsc::channel(EVENTS);
        let machine = Mutex::new(Server::new(settings, table));
        let shared = Arc::new(Shared { clock, machine, events: sender, changed: Notify::new() });
        let mut sockets = Vec::new();
        for address in addresses {
            sockets.push(Socket::bind(Role::Server, *address, clock, traffic.cloned())?);
        }
        let addresses = sockets.iter().map(Socket::local).collect();
        let mut tasks = JoinSet::new();
        for socket in sockets {
            tasks.spawn(answer(Arc::clone(&shared), socket));
        }
        tasks.spawn(expire(Arc::clone(&shared)));
        Ok(PmServer { shared, addresses, events, _tasks: tasks })
    }

    /// Returns the addresses that the server is bound to.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits for the next event.
    pub async fn next_event(&mut self) -> Option<ServerEvent> {
        self.events.recv().await
    }

    /// Reads or changes the server's mappings.
    pub fn table<R>(&self, with: impl FnOnce(&mut Table) -> R) -> R {
        with(self.shared.lock().table())
    }

    /// Reports a TCP connection at an SDP Address. See [`Server::handle_connection`].
    #[must_use]
    pub fn connected(&self, connecting: SocketAddr, address: SocketAddr) -> Option<SocketAddr> {
        let mut machine = self.shared.lock();
        let service = machine.handle_connection(self.shared.clock.now(), connecting, address);
        self.shared.flush(&mut machine);
        service
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Server> {
        // If a holder of the lock panicked, the server's state is still consistent.
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the server's events to the reader.
    fn flush(&self, machine: &mut Server) {
        while let Some(event) = machine.poll_event() {
            // A slow reader loses events. The server's answers do not wait for the reader.
            let _ = self.events.try_send(event);
        }
        self.changed.notify_one();
    }

    fn datagram(&self, from: SocketAddr, octets: &[u8]) -> Vec<Datagram> {
        let mut machine = self.lock();
        machine.handle_datagram(self.clock.now(), from, octets);
        let answers = std::iter::from_fn(|| machine.poll_datagram()).collect();
        self.flush(&mut machine);
        answers
    }
}

async fn answer(shared: Arc<Shared>, socket: Socket) {
    let mut buffer = [0; MAX_DATAGRAM_LEN];
    loop {
        match socket.receive(&mut buffer).await {
            Ok((len, from)) => {
                for datagram in shared.datagram(from, buffer.get(..len).unwrap_or_default()) {
                    socket.send(&datagram).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a port mapper's socket failed");
                return;
            }
        }
    }
}

async fn expire(shared: Arc<Shared>) {
    loop {
        let deadline = shared.lock().deadline();
        tokio::select! {
            () = shared.clock.sleep_until(deadline) => {
                let mut machine = shared.lock();
                machine.handle_timeout(shared.clock.now());
                shared.flush(&mut machine);
            }
            () = shared.changed.notified() => {}
        }
    }
}
