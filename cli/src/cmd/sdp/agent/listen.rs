//! Opens the SDP listeners that programs request. For each accepted SDP connection, the agent opens
//! a TCP connection to the program's TCP listener.
//!
//! The agent gets no message when a program ends. If the program's TCP listener refuses a
//! connection, the agent closes the SDP listener of this program.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use weft_core::wire::portmap::PmTime;
use weft_peer::driver::sdp::{Incoming, SdpListener, SdpSettings, Side, relay};
use weft_peer::portmap::{Mapping, Target};
use weft_peer::shim::{AGENT_V4, AGENT_V6, Failure, Names};

use super::names::NameEntry;
use super::{Agent, Refusal};
use crate::lock::locked;
use crate::runtime;

/// Maximum number of listeners at a time.
const MAX_LISTENERS: usize = 1024;

/// The addresses of the SDP listeners, each with the address of the program's TCP listener.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<HashMap<SocketAddr, SocketAddr>>);

impl Agent {
    /// Opens an SDP listener at `sdp` for the program whose TCP listener is at `service`. Port 0
    /// means a free port. Does nothing if this program already has an SDP listener at `sdp` or, for
    /// port 0, at any address.
    pub(super) fn listen(self: &Arc<Self>, service: SocketAddr, sdp: SocketAddr, only_v6: bool) -> Result<(), Refusal> {
        let mut listeners = locked(&self.listeners.0);
        if sdp.port() == 0 && self.mapper.is_none() {
            let message = "`sdp auto` needs an agent with --pm-listen; otherwise clients cannot find the SDP Address";
            return Err((Failure::Other, message.to_owned()));
        }
        match listeners.get(&sdp) {
            None if sdp.port() == 0 && listeners.values().any(|served| *served == service) => return Ok(()),
            Some(served) if *served == service => return Ok(()),
            Some(served) => {
                return Err((Failure::InUse, format!("the agent already listens by SDP on {sdp} for {served}")));
            }
            None if listeners.len() >= MAX_LISTENERS => {
                return Err((
                    Failure::Other,
                    format!("the agent already has the maximum of {MAX_LISTENERS} listeners"),
                ));
            }
            None => {}
        }
        let cannot =
            |error: &dyn std::fmt::Display| (Failure::InUse, format!("cannot listen by SDP on {sdp}: {error}"));
        let settings = SdpSettings { only_v6, ..self.sdp.relayed() };
        let listener = SdpListener::bind(&self.device, sdp, settings).map_err(|error| cannot(&error))?;
        let sdp = listener.local_addr().map_err(|error| cannot(&error))?;
        if let Some(mapper) = &self.mapper {
            let mapping = Mapping { service, target: Target::Fixed(vec![sdp]), pm_time: PmTime::ONCE };
            mapper.table(|table| table.insert(mapping)).map_err(|error| cannot(&error))?;
        }
        listeners.insert(sdp, service);
        drop(listeners);
        let agent = Arc::clone(self);
        tokio::spawn(async move {
            agent.accept(listener, service).await;
            if let Some(mapper) = &agent.mapper {
                mapper.table(|table| table.remove(service));
            }
            locked(&agent.listeners.0).remove(&sdp);
        });
        Ok(())
    }

    /// Accepts SDP connections until the program has ended, or until the agent stops.
    async fn accept(self: &Arc<Self>, listener: SdpListener, service: SocketAddr) {
        let (end, mut gone) = tokio::sync::mpsc::channel::<()>(1);
        loop {
            tokio::select! {
                came = listener.incoming() => match (came, Arc::clone(&self.room).try_acquire_owned()) {
                    (Ok(incoming), Ok(permit)) => {
                        let (agent, end) = (Arc::clone(self), end.clone());
                        tokio::spawn(async move {
                            if agent.serve(incoming, service, permit).await == ProgramState::Gone {
                                // If the channel is full, it already has a message.
                                let _ = end.try_send(());
                            }
                        });
                    }
                    (Ok(incoming), Err(_)) => {
                        let from = incoming.peer_addr();
                        let text = format!("refused {from} for {service}: the agent has too many connections; raise --most");
                        self.log.report_error(&text);
                    }
                    (Err(error), _) => {
                        self.log.report_error(&format!("cannot accept a connection for {service}: {error}"));
                        tokio::time::sleep(runtime::ACCEPT_AGAIN).await;
                    }
                },
                _ = gone.recv() => return,
                () = self.stopped() => return,
            }
        }
    }

    /// Relays one connection until it ends. Returns whether the program still listens.
    async fn serve(&self, incoming: Incoming, service: SocketAddr, permit: OwnedSemaphorePermit) -> ProgramState {
        let (from, mut program) = (incoming.peer_addr(), ProgramState::Listening);
        let entry = self.log.open(format!("{from} to the program at {service}"));
        if let (Some(mapper), Ok(local)) = (&self.mapper, incoming.local_addr()) {
            // Ignore errors, because a client can connect without the port mapper.
            let _ = mapper.connected(from, local);
        }
        let sides = async {
            let sdp = incoming.start().await?;
            self.sdp.set_mode(&sdp)?;
            let names = Names { local: SocketAddr::new(sdp.local_addr().ip(), service.port()), peer: from };
            match self.program(service, names).await {
                Ok((program, name_entry)) => anyhow::Ok((Side::Sdp(sdp), Side::Tcp(program), name_entry)),
                Err(error) => {
                    if error.kind() == io::ErrorKind::ConnectionRefused {
                        program = ProgramState::Gone;
                    }
                    Side::Sdp(sdp).abort().await;
                    Err(error.into())
                }
            }
        };
        let sides = tokio::select! {
            sides = sides => sides,
            () = self.stopped() => Err(anyhow::anyhow!("stopped")),
        };
        match sides {
            Ok((first, second, name_entry)) => {
                entry.finish_relayed(&relay(first, second, self.stopped()).await);
                drop(name_entry);
            }
            Err(error) => entry.finish_failed(&format!("{error:#}")),
        }
        drop(permit);
        program
    }

    /// Opens a TCP connection to the program. Stores the real addresses first, because the program
    /// can query these addresses as soon as it is connected.
    async fn program(&self, service: SocketAddr, names: Names) -> io::Result<(TcpStream, NameEntry<'_>)> {
        let mut failed = io::ErrorKind::AddrNotAvailable.into();
        for (from, to) in loopback_routes(service) {
            let connected = async {
                let socket = if from.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
                socket.bind(SocketAddr::new(from, 0))?;
                let name_entry = self.names.insert(to, socket.local_addr()?, names);
                let stream = socket.connect(to).await?;
                stream.set_nodelay(true)?;
                Ok((stream, name_entry))
            };
            match connected.await {
                Ok(connected) => return Ok(connected),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Whether the program listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramState {
    Listening,
    Gone,
}

/// Returns the source and destination addresses for a TCP connection to the program, in the order
/// of preference. A program that listens on all IPv6 addresses usually also listens on all IPv4
/// addresses. So IPv4 is the second choice, in case this host has no IPv6.
fn loopback_routes(service: SocketAddr) -> Vec<(IpAddr, SocketAddr)> {
    let (v4, v6) = (IpAddr::V4(AGENT_V4), IpAddr::V6(AGENT_V6));
    let at = |ip: IpAddr| SocketAddr::new(ip, service.port());
    match service.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => vec![(v4, at(Ipv4Addr::LOCALHOST.into()))],
        IpAddr::V4(ip) => vec![(v4, at(ip.into()))],
        IpAddr::V6(ip) if ip.is_unspecified() => {
            vec![(v6, at(Ipv6Addr::LOCALHOST.into())), (v4, at(Ipv4Addr::LOCALHOST.into()))]
        }
        IpAddr::V6(ip) => vec![(v6, at(ip.into()))],
    }
}
