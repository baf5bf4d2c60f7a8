//! Watches the port mappers that have not answered yet. A separate, connected socket watches each
//! of these port mappers. Therefore an ICMP "port unreachable" message ends the wait for an answer
//! at once.
//!
//! The queries themselves are sent from the client's unconnected socket, because only that socket
//! receives replies from any address.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::socket::{MAX_DATAGRAM_LEN, Socket};

/// Maximum number of events that wait for the client's task.
const WAITING: usize = 64;

/// What a connected socket received.
#[derive(Debug)]
pub(super) enum Event {
    /// A datagram, and its sender.
    Datagram(SocketAddr, Vec<u8>),
    /// The port mapper's port is closed.
    Absent(SocketAddr),
}

/// The watched port mappers, each with its task.
#[derive(Debug)]
pub(super) struct Watches {
    tasks: HashMap<SocketAddr, JoinSet<()>>,
    sender: mpsc::Sender<Event>,
    receiver: mpsc::Receiver<Event>,
}

impl Watches {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Watches { tasks: HashMap::new(), sender, receiver }
    }

    /// Watches a port mapper until [`keep`](Self::keep) stops watching it. If no socket can be
    /// opened, the client does not notice a closed port, and waits until its time-out.
    pub(super) fn begin(&mut self, socket: &Socket, mapper: SocketAddr) {
        if self.tasks.contains_key(&mapper) {
            return;
        }
        match socket.connected(mapper) {
            Ok(connected) => {
                let task = watch(connected, mapper, self.sender.clone());
                self.tasks.entry(mapper).or_default().spawn(task);
            }
            Err(error) => tracing::debug!(%mapper, %error, "cannot watch a port mapper for errors"),
        }
    }

    /// Stops watching all port mappers for which `is_used` returns false.
    pub(super) fn keep(&mut self, is_used: impl Fn(SocketAddr) -> bool) {
        self.tasks.retain(|mapper, _| is_used(*mapper));
    }

    /// Waits for the next event.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }
}

async fn watch(socket: UdpSocket, mapper: SocketAddr, events: mpsc::Sender<Event>) {
    let mut buffer = [0; MAX_DATAGRAM_LEN];
    loop {
        let event = match socket.recv_from(&mut buffer).await {
            Ok((len, from)) => Event::Datagram(from, buffer.get(..len).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Event::Absent(mapper),
            Err(error) => return tracing::debug!(%mapper, %error, "a port mapper is not watched any more"),
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
}
