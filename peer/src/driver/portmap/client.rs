//! A client that queries port mappers, over one UDP socket for each address family.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::{future, io};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::socket::{MAX_DATAGRAM_LEN, Role, Socket};
use super::watch::{Event, Watches};
use crate::driver::clock::Clock;
use crate::driver::device::random_seed;
use crate::driver::traffic_log::TrafficLog;
use crate::portmap::{Client, ClientSettings, Query, QueryError, Resolution, Resolved, Transaction};

/// Maximum number of queries that wait for the client's task.
const WAITING: usize = 64;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum PmError {
    /// The client rejected the query.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The client's socket failed, so the client has ended.
    #[error("the port mapper client has ended, because its socket failed")]
    Ended,
}

enum Command {
    Query(Query, oneshot::Sender<Result<Resolved, QueryError>>),
    Reset(Query, SocketAddr, oneshot::Sender<Resolution>),
}

/// A PM Client. Clones share its sockets and its cache of answers. The client ends when the last
/// clone is dropped.
#[derive(Debug, Clone)]
pub struct PmClient {
    commands: mpsc::Sender<Command>,
    _task: Arc<JoinSet<()>>,
}

impl PmClient {
    /// Creates a client at the unspecified addresses, with ports that the operating system picks.
    /// The client uses only the address families that the host supports.
    ///
    /// # Errors
    /// No socket can be bound for either address family.
    pub fn bind(settings: ClientSettings, traffic: Option<&TrafficLog>) -> io::Result<Self> {
        let any: [SocketAddr; 2] = [(Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::UNSPECIFIED, 0).into()];
        Self::bind_to(&any, settings, traffic)
    }

    /// Creates a client at these addresses. For each address family it uses the last address that
    /// can be bound.
    ///
    /// # Errors
    /// None of the addresses can be bound.
    pub fn bind_to(
        addresses: &[SocketAddr],
        settings: ClientSettings,
        traffic: Option<&TrafficLog>,
    ) -> io::Result<Self> {
        let clock = Clock::start();
        let (mut sockets, mut failed) = ([None, None], None);
        for address in addresses {
            match Socket::bind(Role::Client, *address, clock, traffic.cloned()) {
                Ok(socket) => sockets[usize::from(address.is_ipv6())] = Some(socket),
                Err(error) => failed = Some(error),
            }
        }
        if sockets.iter().all(Option::is_none) {
            return Err(failed.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()));
        }
        let (commands, arrived) = mpsc::channel(WAITING);
        let [v4, v6] = sockets;
        let client = Client::new(settings, random_seed());
        let task = Task { clock, v4, v6, client, waiting: HashMap::new(), watches: Watches::new() };
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run(arrived));
        Ok(PmClient { commands, _task: Arc::new(tasks) })
    }

    /// Queries a port mapper, or returns a cached answer. If the port mapper does not answer, this
    /// function returns only after all the repetitions that the settings define.
    ///
    /// # Errors
    /// The client rejected the query, or the client has ended.
    pub async fn resolve(&self, query: Query) -> Result<Resolved, PmError> {
        let (result, answer) = oneshot::channel();
        self.commands.send(Command::Query(query, result)).await.map_err(|_| PmError::Ended)?;
        Ok(answer.await.map_err(|_| PmError::Ended)??)
    }

    /// Reports that the connection to `address` was reset. `address` is the answer to `query`.
    /// Returns where to connect instead.
    ///
    /// # Errors
    /// The client has ended.
    pub async fn reset(&self, query: Query, address: SocketAddr) -> Result<Resolution, PmError> {
        let (result, answer) = oneshot::channel();
        self.commands.send(Command::Reset(query, address, result)).await.map_err(|_| PmError::Ended)?;
        answer.await.map_err(|_| PmError::Ended)
    }
}

struct Task {
    clock: Clock,
    v4: Option<Socket>,
    v6: Option<Socket>,
    client: Client,
    waiting: HashMap<Transaction, oneshot::Sender<Result<Resolved, QueryError>>>,
    watches: Watches,
}

async fn receive(socket: Option<&Socket>, buffer: &mut [u8; MAX_DATAGRAM_LEN]) -> io::Result<(usize, SocketAddr)> {
    match socket {
        Some(socket) => socket.receive(buffer).await,
        None => future::pending().await,
    }
}

impl Task {
    async fn run(mut self, mut arrived: mpsc::Receiver<Command>) {
        let (mut in_4, mut in_6) = ([0; MAX_DATAGRAM_LEN], [0; MAX_DATAGRAM_LEN]);
        loop {
            let timer = self.clock.sleep_until(self.client.deadline());
            let received = tokio::select! {
                command = arrived.recv() => {
                    let Some(command) = command else { return };
                    self.command(command);
                    None
                }
                received = receive(self.v4.as_ref(), &mut in_4) => Some((received, &in_4)),
                received = receive(self.v6.as_ref(), &mut in_6) => Some((received, &in_6)),
                event = self.watches.next() => {
                    match event {
                        Some(Event::Datagram(from, octets)) => {
                            let socket = if from.is_ipv4() { &self.v4 } else { &self.v6 };
                            socket.iter().for_each(|socket| socket.received(from, &octets));
                            self.client.handle_datagram(self.clock.now(), from, &octets);
                        }
                        Some(Event::Absent(mapper)) => self.client.handle_absent(mapper),
                        None => {}
                    }
                    None
                }
                () = timer => None,
            };
            match received {
                Some((Ok((len, from)), buffer)) => {
                    self.client.handle_datagram(self.clock.now(), from, buffer.get(..len).unwrap_or_default());
                }
                Some((Err(error), _)) => {
                    tracing::warn!(%error, "a port mapper client's socket failed");
                    return;
                }
                None => {}
            }
            self.client.handle_timeout(self.clock.now());
            self.drain().await;
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Query(query, result) => match self.client.query(self.clock.now(), query) {
                Ok(transaction) => {
                    self.waiting.insert(transaction, result);
                }
                // If the caller has dropped its future, the error cannot be sent.
                Err(error) => {
                    let _ = result.send(Err(error));
                }
            },
            Command::Reset(query, address, result) => {
                let _ = result.send(self.client.reset(&query, address));
            }
        }
    }

    async fn drain(&mut self) {
        while let Some(datagram) = self.client.poll_datagram() {
            let socket = if datagram.to.is_ipv4() { &self.v4 } else { &self.v6 };
            if let Some(socket) = socket {
                if self.client.has_open_query(datagram.to) {
                    self.watches.begin(socket, datagram.to);
                }
                socket.send(&datagram).await;
            }
        }
        while let Some((from, why)) = self.client.poll_discarded() {
            tracing::debug!(%from, %why, "a datagram of a port mapper was discarded");
        }
        while let Some(resolved) = self.client.poll_event() {
            if let Some(result) = self.waiting.remove(&resolved.transaction) {
                let _ = result.send(Ok(resolved));
            }
        }
        // Cancels the queries whose callers have dropped their futures.
        let gone: Vec<Transaction> =
            self.waiting.iter().filter(|(_, result)| result.is_closed()).map(|(transaction, _)| *transaction).collect();
        for transaction in gone {
            self.waiting.remove(&transaction);
            self.client.cancel(transaction);
        }
        self.watches.keep(|mapper| self.client.has_open_query(mapper));
    }
}
