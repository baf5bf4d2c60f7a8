//! The builtin responder over real TCP. It accepts connections and echoes each Send that it
//! receives.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use weft_peer::driver::serve::{Server, ServerSettings};
//!
//! let server = Server::bind("127.0.0.1:0".parse().unwrap(), ServerSettings::default())?;
//! println!("listening on {}", server.local_addr());
//! let stop = server.stop_handle();
//! let running = tokio::spawn(server.run());
//! stop.stop();
//! running.await?;
//! # Ok(())
//! # }
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::accept_error::{ACCEPT_PAUSE, is_connection_error};
use super::clock::Clock;
use super::run::{drive, prepare};
use super::tcp::bound_socket;
use super::traffic_log::{Direction, EventContent, TrafficLog};
use crate::connection::{Closed, Connection, Event, Settings};
use crate::hostile::mangle::Mangling;
use crate::mpa::Negotiated;
use crate::service::{Echo, Service};
use crate::time::Instant;

/// The settings of a [`Server`].
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Settings of each connection, including its deviations. The EMSS is replaced by TCP's value.
    pub connection: Settings,
    /// Mangles the bytes that the server sends. The mangler numbers the accepted connections from
    /// 0. Default: no mangling.
    pub mangling: Option<Mangling>,
    /// Records the bytes of all connections, numbered in the order of acceptance. Default: no
    /// record.
    pub traffic: Option<TrafficLog>,
    /// Maximum number of connections that are served at the same time. Further connections wait in
    /// TCP's queue. Default 1024.
    pub max_connections: usize,
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings { connection: Settings::default(), mangling: None, traffic: None, max_connections: 1024 }
    }
}

/// An entry of a [`Server`]'s log of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionReport {
    /// Number of the connection, from 1 in the order of acceptance.
    pub number: u64,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// The event.
    pub event: ConnectionEvent,
}

/// What happened on a connection. After [`Accepted`](ConnectionEvent::Accepted), each connection
/// has exactly one event [`Closed`](ConnectionEvent::Closed), which is its last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The TCP connection was accepted.
    Accepted,
    /// MPA start-up succeeded with these results.
    Established(Negotiated),
    /// The connection is over.
    Closed {
        /// How the connection ended. `None` if it ended before it was served.
        closed: Option<Closed>,
        /// Number of Sends that were received.
        sends: u64,
    },
}

/// The echo service, which also reports its events.
struct ReportingEcho<'a> {
    report: &'a (dyn Fn(ConnectionEvent) + Send + Sync),
    sends: u64,
    closed: Option<Closed>,
}

impl Service for ReportingEcho<'_> {
    fn handle_event(&mut self, now: Instant, connection: &mut Connection, event: Event) {
        match &event {
            Event::Established { negotiated, .. } => (self.report)(ConnectionEvent::Established(*negotiated)),
            Event::Received { .. } => self.sends += 1,
            Event::Closed(closed) => self.closed = Some(*closed),
            _ => {}
        }
        Echo.handle_event(now, connection, event);
    }

    fn is_ready(&self, connection: &Connection) -> bool {
        Echo.is_ready(connection)
    }
}

/// A responder that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    settings: ServerSettings,
    stop: StopHandle,
}

/// Stops a [`Server`]. Clones stop the same server. Dropping a handle stops nothing.
#[derive(Debug, Clone)]
pub struct StopHandle(Arc<watch::Sender<bool>>);

impl StopHandle {
    /// Makes the server accept no more connections, and close the open connections gracefully.
    /// [`Server::run`] returns when all connections are closed. A silent peer delays this by at
    /// most the close time-out of the connections.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// Maximum number of connections that TCP queues while the server is busy.
const BACKLOG: u32 = 1024;

impl Server {
    /// Listens on `address`. Port 0 picks a free port. Call this function in a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr, settings: ServerSettings) -> io::Result<Self> {
        let listener = bound_socket(address)?.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, settings, stop: StopHandle(Arc::new(watch::Sender::new(false))) })
    }

    /// Returns the address that the server listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle that stops this server.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Serves until the server is stopped and its connections are closed. If descriptors or memory
    /// run out, the server accepts no connection until descriptors or memory become free.
    pub async fn run(self) {
        self.run_reporting(|_| {}).await;
    }

    /// Acts like [`run`](Self::run), and also calls `report` with each event. `report` runs on the
    /// runtime's threads, so a `report` that blocks also blocks connections.
    pub async fn run_reporting(self, report: impl Fn(ConnectionReport) + Send + Sync + 'static) {
        let report = Arc::new(report);
        let mut number = 0;
        let clock = Clock::start();
        let permits = Arc::new(Semaphore::new(self.settings.max_connections));
        let mut stop = self.stop.0.subscribe();
        let mut tasks = JoinSet::new();
        loop {
            let accepted = async {
                // The semaphore is never closed.
                let permit = Arc::clone(&permits).acquire_owned().await.ok();
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                accepted = accepted => accepted,
                Some(_) = tasks.join_next() => continue,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_connection_error(&error) => continue,
                // No descriptor or memory is free, perhaps because other code of this process uses
                // them. Try again when a connection ends, or after a pause.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; weft tries again");
                    tokio::select! {
                        Some(_) = tasks.join_next() => continue,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => continue,
                        _ = stop.wait_for(|stop| *stop) => break,
                    }
                }
            };
            let mut settings = self.settings.connection.clone();
            let stop = self.stop.0.subscribe();
            let mangler = self.settings.mangling.as_ref().map(|mangling| mangling.mangler(number));
            let traffic = self.settings.traffic.clone();
            number += 1;
            let report = Arc::clone(&report);
            tasks.spawn(async move {
                let _permit = permit;
                let report = move |event| report(ConnectionReport { number, peer, event });
                report(ConnectionEvent::Accepted);
                let mut service = ReportingEcho { report: &report, sends: 0, closed: None };
                if let Err(error) = prepare(&stream, &mut settings) {
                    tracing::debug!(%error, "a connection ended before it was served");
                } else {
                    let mut connection = Connection::respond(clock.now(), settings);
                    let track = traffic.as_ref().map(TrafficLog::track);
                    if let (Some(track), Ok(tester)) = (&track, stream.local_addr()) {
                        let connected = EventContent::Connected { tester, target: peer };
                        track.record(clock.now(), Direction::FromTarget, connected);
                    }
                    drive(stream, &mut connection, &mut service, clock, stop, mangler, track).await;
                }
                report(ConnectionEvent::Closed { closed: service.closed, sends: service.sends });
            });
        }
        drop(self.listener);
        while tasks.join_next().await.is_some() {}
    }
}
