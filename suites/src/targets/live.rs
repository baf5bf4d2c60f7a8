//! A target while a run lasts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::task::AbortHandle;
use weft_agent::soft::Soft;
use weft_core::wire::portmap::PmTime;
use weft_peer::Settings;
use weft_peer::driver::cm::{CmError, CmSettings, ConnectRequest, Listener};
use weft_peer::driver::device::random_seed;
use weft_peer::driver::serve::{Server, ServerSettings, StopHandle};
use weft_peer::driver::{Awaiting, Desk, Device, Link, TcpLink, VirtualLink};
use weft_peer::memory::MemorySettings;
use weft_peer::mpa::{EnhancedUse, Model};
use weft_peer::portmap::{Mapping, ServerSettings as PmSettings, Table, TableError, Target as PmTarget};
use weft_peer::sdp::Role;
use weft_peer::service::{RpingServer, SdpServer, SdpUser};
use weft_peer::verbs::{Node, RnicError, RnicSettings};
use weft_peer::workload::{WorkloadError, ping};

use super::start::Start;
use super::{MADE, MAPPED, Service, Target, TargetKind};
use crate::agent::Agent;
use crate::model::Role as TargetRole;

/// Seconds that a connection attempt may take.
const CONNECT_SECONDS: f64 = 5.0;

/// Why a target is not there.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its address means nothing.
    #[error("target unreachable: {address}: {}", unresolved(.error))]
    Resolve {
        /// As the target file has it.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// An initiator cannot be waited for there.
    #[error("cannot listen on {address}: {error}: name an address of this machine and a port that is free")]
    Listen {
        /// As the target file has it.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The builtin responder does not start.
    #[error("the builtin responder does not start: {0}")]
    Builtin(std::io::Error),
    /// Its SDP socket has no memory.
    #[error("the builtin responder has no SDP socket: {0}")]
    Sdp(WorkloadError),
    /// Its port mapper's table.
    #[error("the builtin responder has no port mapper: {0}")]
    Table(TableError),
    /// Its RNIC does not open.
    #[error("the builtin responder has no RNIC: {0}")]
    Rnic(#[from] RnicError),
}

/// The resolver's own words, without those of the library in front of them.
fn unresolved(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once("lookup address information: ").map_or(text.clone(), |(_, why)| why.to_owned())
}

/// The way to a target for one case.
pub(crate) struct Reached {
    pub(crate) link: Link,
    /// What makes an initiator connect.
    pub(crate) start: Option<Start>,
    /// Its agent, where that is in this process.
    pub(crate) agent: Option<Agent>,
}

/// A target that can be connected to.
pub struct Live {
    reach: Reach,
    /// Of a builtin target.
    settings: Option<Settings>,
    connect_timeout: Duration,
    server: Option<StopHandle>,
    rping: Option<AbortHandle>,
    /// Where its port mapper is.
    mappers: Vec<SocketAddr>,
}

enum Reach {
    Virtual(Settings),
    /// The ports of the echo service and of rping.
    BuiltinTcp {
        echo: SocketAddr,
        rping: SocketAddr,
    },
    Tcp(SocketAddr),
    /// weft's own initiator: in process, or over TCP.
    Initiator {
        settings: Settings,
        over_tcp: bool,
    },
    /// Any other that connects itself.
    Waiting {
        awaiting: Awaiting,
        start: Start,
    },
    /// Any other that asks a port mapper first.
    Asking {
        desk: Desk,
        start: Start,
    },
}

impl Live {
    /// Starts a builtin target; resolves the address of any other. Nothing is sent to it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(target: &Target) -> Result<Self, OpenError> {
        let mut settings = Settings { deviations: target.deviations.clone(), ..Settings::default() };
        if target.plain {
            (settings.mpa.crc, settings.mpa.enhanced) = (false, EnhancedUse::Off);
        }
        let connect_timeout = target.scaled(CONNECT_SECONDS);
        let mut live = Live {
            reach: Reach::Virtual(settings.clone()),
            settings: (target.kind != TargetKind::Tcp).then(|| settings.clone()),
            connect_timeout,
            server: None,
            rping: None,
            mappers: Vec::new(),
        };
        match target.kind {
            TargetKind::Builtin | TargetKind::BuiltinTcp if target.role == TargetRole::Initiator => {
                let over_tcp = target.kind == TargetKind::BuiltinTcp;
                drop(VirtualLink::rping_client(settings.clone())?);
                live.reach = Reach::Initiator { settings, over_tcp };
            }
            TargetKind::Tcp if let Some(listen) = target.listen => {
                let failed = |error| OpenError::Listen { address: listen, error };
                let start = |awaiting| match target.start.is_empty() {
                    true => Start::Person { name: target.name.clone() },
                    false => Start::Command { argv: target.start.clone(), awaiting },
                };
                live.reach = if target.service == Service::PortMapper {
                    Reach::Asking { desk: Desk::bind(listen).map_err(failed)?, start: start(None) }
                } else {
                    let awaiting = Awaiting::bind(listen).map_err(failed)?;
                    Reach::Waiting { start: start(Some(awaiting.clone())), awaiting }
                };
            }
            // Its RNIC is made for each link: see whether it can be.
            TargetKind::Builtin => drop(VirtualLink::rping(settings)?),
            TargetKind::BuiltinTcp => {
                let rping = live.start_rping(&settings)?;
                let settings = ServerSettings { connection: settings, ..ServerSettings::default() };
                let server = Server::bind(LOOPBACK, settings).map_err(OpenError::Builtin)?;
                live.server = Some(server.stop_handle());
                let echo = server.local_addr();
                tokio::spawn(server.run());
                live.reach = Reach::BuiltinTcp { echo, rping };
            }
            TargetKind::Tcp => {
                let address = resolve(target.address.as_deref().unwrap_or_default()).await?;
                live.mappers =
                    [Some(address), target.mapper_v6.map(|(mapper, _)| mapper)].into_iter().flatten().collect();
                live.reach = Reach::Tcp(address);
            }
        }
        Ok(live)
    }

    /// `rping -s` on a software RNIC in real time.
    fn start_rping(&mut self, settings: &Settings) -> Result<SocketAddr, OpenError> {
        let memory = MemorySettings { stag_seed: random_seed(), ..MemorySettings::default() };
        let (mut rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings { memory, ..RnicSettings::default() })?;
        rnic.deviate(settings.deviations.clone());
        let device = Device::new(rnic);
        let cm = CmSettings { mpa: settings.mpa, startup_timeout: settings.startup_timeout, ..CmSettings::default() };
        let listener = Listener::bind(&device, LOOPBACK, cm).map_err(OpenError::Builtin)?;
        let address = listener.local_addr();
        let serving = tokio::spawn(async move {
            loop {
                let request = listener.next().await;
                let device = device.clone();
                tokio::spawn(async move {
                    if let Err(error) = serve_rping(&device, request).await {
                        tracing::debug!(%error, "a connection of the builtin rping ended");
                    }
                });
            }
        });
        self.rping = Some(serving.abort_handle());
        Ok(address)
    }

    /// How many cases are run at a time when `asked` are wanted, or nobody said (0). On weft's own
    /// targets cases do not disturb each other; over TCP each spends its time waiting. What else
    /// has to be told from chance has one.
    pub(crate) fn jobs(&self, asked: usize) -> usize {
        match self.reach {
            Reach::Virtual(_) => asked.max(1),
            Reach::BuiltinTcp { .. } if asked == 0 => TCP_JOBS,
            Reach::BuiltinTcp { .. } => asked,
            Reach::Initiator { over_tcp: false, .. } => asked.max(1),
            Reach::Initiator { .. } if asked == 0 => TCP_JOBS,
            Reach::Initiator { .. } => asked,
            Reach::Tcp(_) | Reach::Waiting { .. } | Reach::Asking { .. } => 1,
        }
    }

    /// A link of its own for one case, to the service that the description names where the target
    /// has several; its clock begins now. And what makes an initiator connect to it; `None` for a
    /// responder.
    ///
    /// # Errors
    /// The builtin target has no RNIC; no port is free.
    pub(crate) fn link(&self, target: &Target) -> Result<Reached, OpenError> {
        if target.service == Service::Agent
            && let Some(settings) = &self.settings
        {
            let mut settings = settings.clone();
            if target.asks_enhanced {
                settings.mpa.enhanced = EnhancedUse::Ask;
            }
            return self.with_agent(settings);
        }
        let (link, start) = self.way(target)?;
        Ok(Reached { link, start, agent: None })
    }

    /// The way to a builtin target whose verbs the case drives.
    fn with_agent(&self, settings: Settings) -> Result<Reached, OpenError> {
        let start = matches!(self.reach, Reach::Initiator { .. }).then_some(Start::Virtual);
        let link = match self.reach {
            Reach::BuiltinTcp { .. } => Link::Tcp(TcpLink::new(LOOPBACK).with_connect_timeout(self.connect_timeout)),
            Reach::Initiator { over_tcp: true, .. } => {
                let awaiting = Awaiting::bind(LOOPBACK);
                Link::Accept(awaiting.map_err(|error| OpenError::Listen { address: LOOPBACK, error })?.link())
            }
            _ => {
                let soft = Soft::new(settings)?;
                let nic = soft.clone();
                let link = Link::Virtual(VirtualLink::serving(move |now| nic.arrive(now)));
                return Ok(Reached { link, start, agent: Some(Agent::Soft(soft)) });
            }
        };
        Ok(Reached { link, start, agent: Some(Agent::Here(Box::new(settings))) })
    }

    fn way(&self, target: &Target) -> Result<(Link, Option<Start>), OpenError> {
        let asking = |settings: &Settings| {
            let mut settings = settings.clone();
            settings.mpa.markers |= target.asks_markers;
            settings
        };
        let service = target.service.driver();
        let address = match &self.reach {
            Reach::Virtual(settings) => return Ok((Link::Virtual(service.responder(asking(settings))?), None)),
            Reach::Initiator { settings, over_tcp } => {
                let mut settings = asking(settings);
                if target.asks_enhanced {
                    settings.mpa.enhanced = EnhancedUse::Ask;
                    settings.mpa.enhanced_settings.model = Model::PeerToPeer;
                }
                if *over_tcp {
                    let (link, start) = service.initiator_over_tcp(settings, target.service)?;
                    return Ok((link, Some(start)));
                }
                return Ok((Link::Virtual(service.initiator(settings)?), Some(Start::Virtual)));
            }
            Reach::Waiting { awaiting, start } => return Ok((Link::Accept(awaiting.link()), Some(start.clone()))),
            Reach::Asking { desk, start } => return Ok((Link::Mapper(desk.link()), Some(start.clone()))),
            Reach::BuiltinTcp { rping, .. } if target.service == Service::Rping => *rping,
            Reach::BuiltinTcp { echo, .. } => *echo,
            Reach::Tcp(address) => *address,
        };
        let mappers = self.mappers.clone();
        let link = TcpLink::new(address).with_connect_timeout(self.connect_timeout).with_mappers(mappers);
        Ok((Link::Tcp(link), None))
    }
}

/// An SDP socket, with a port mapper that leads to it.
pub(crate) fn sdp_link(user: SdpUser, role: Role, settings: &Settings) -> Result<VirtualLink, OpenError> {
    let deviations = settings.deviations.clone();
    let link = VirtualLink::sdp(SdpServer::new(user, role, deviations.clone())).map_err(OpenError::Sdp)?;
    let mut table = Table::default();
    let target = VirtualLink::TARGET;
    let v6 = VirtualLink::mapper(true, false).ip();
    let mappings = [
        (SocketAddr::new(target.ip(), MAPPED), PmTarget::Fixed(vec![target]), PmTime(8)),
        (SocketAddr::new(target.ip(), MADE), PmTarget::Made { at: target, ports: 20_000..=20_009 }, PmTime::ONCE),
        (SocketAddr::new(v6, MAPPED), PmTarget::Fixed(vec![SocketAddr::new(v6, target.port())]), PmTime(8)),
    ];
    for (service, target, pm_time) in mappings {
        table.insert(Mapping { service, target, pm_time }).map_err(OpenError::Table)?;
    }
    Ok(link.with_mapper(PmSettings { deviations, ..PmSettings::default() }, table))
}

/// Cases at a time over loopback TCP. They wait most of their time: the smoke tier takes 14 s with
/// 8 and 9 s with 24, on two processors.
const TCP_JOBS: usize = 24;
pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Serves one client to its end.
async fn serve_rping(device: &Device, request: Result<ConnectRequest, CmError>) -> Result<(), WorkloadError> {
    let request = request?;
    let mut server = ping::Server::new(device, RpingServer::SIZE)?;
    server.accept(request)?;
    while server.round().await?.is_some() {}
    server.disconnect().await
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.stop();
        }
        if let Some(rping) = &self.rping {
            rping.abort();
        }
    }
}

async fn resolve(address: &str) -> Result<SocketAddr, OpenError> {
    let failed = |error| OpenError::Resolve { address: address.to_owned(), error };
    let mut found = tokio::net::lookup_host(address).await.map_err(failed)?;
    found.next().ok_or_else(|| failed(std::io::Error::other("the name has no address")))
}
