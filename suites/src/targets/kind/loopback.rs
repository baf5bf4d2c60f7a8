//! weft's own endpoint on the loopback interface, over real TCP. If the endpoint is a responder,
//! all cases share its servers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use weft_peer::Settings;
use weft_peer::driver::cm::{CmError, CmSettings, ConnectRequest, Listener};
use weft_peer::driver::device::random_seed;
use weft_peer::driver::serve::{Server, ServerSettings, StopHandle};
use weft_peer::driver::{Device, Link, LinkListener, TcpLink, VirtualLink};
use weft_peer::hostile::Deviation;
use weft_peer::memory::MemorySettings;
use weft_peer::service::RpingServer;
use weft_peer::verbs::{Node, RnicSettings};
use weft_peer::workload::{WorkloadError, ping};

use super::super::open_error::{CONNECT_SECONDS, OpenError};
use super::super::{Description, Service, Start, Target};
use super::{Builtin, CaseLink, Connector, Kind, Opening, TargetAccess, builtin};
use crate::agent::Agent;
use crate::model::Role;

pub(super) const KIND: Kind = Kind {
    name: "builtin-tcp",
    about: "weft's own responder on a loopback TCP port.",
    read: |file| builtin::read(file, Loopback::default()),
};

/// The loopback address. Port 0 selects a free port.
pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Default number of cases that run at the same time. Cases wait most of their time. On two
/// processors, the smoke tier takes 14 s with 8 cases at a time, and 9 s with 24.
const JOBS: usize = 24;

/// weft's own endpoint over loopback TCP.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loopback(pub(crate) Builtin);

impl TargetAccess for Loopback {
    fn description(&self, _: &Description) -> String {
        "loopback TCP".into()
    }

    fn builtin(&self) -> Option<&Builtin> {
        Some(&self.0)
    }

    fn segments_advice(&self) -> Option<&'static str> {
        Some("To let the tester choose them, use a target of kind \"builtin\", which has a virtual link.")
    }

    fn with_deviation(&self, deviation: &'static Deviation) -> Option<Arc<dyn TargetAccess>> {
        Some(Arc::new(Loopback(self.0.with_deviation(deviation))))
    }

    fn offers(&self, service: Service, target: &Description) -> bool {
        match service {
            Service::PortMapper => target.role == Role::Initiator,
            other => matches!(other, Service::Agent | Service::Echo | Service::Rping),
        }
    }

    /// The builtin client of a port mapper sends its requests over IPv4.
    fn maps_v6(&self, _: &Description) -> bool {
        false
    }

    fn open<'t>(&'t self, target: &'t Target) -> Opening<'t> {
        let settings = self.0.settings();
        let connect_timeout = target.options.scaled(CONNECT_SECONDS);
        let opened = match target.role() {
            Role::Initiator => InitiatorConnector::open(settings).map(|opened| Box::new(opened) as Box<dyn Connector>),
            Role::Responder | Role::Both => {
                ResponderConnector::open(settings, connect_timeout).map(|opened| Box::new(opened) as Box<dyn Connector>)
            }
        };
        Box::pin(std::future::ready(opened))
    }
}

fn jobs(requested: usize) -> usize {
    if requested == 0 { JOBS } else { requested }
}

/// weft's own initiator. The tester has a separate listener for each case.
struct InitiatorConnector(Settings);

impl InitiatorConnector {
    fn open(settings: Settings) -> Result<Self, OpenError> {
        drop(VirtualLink::rping_client(settings.clone())?);
        Ok(InitiatorConnector(settings))
    }
}

impl Connector for InitiatorConnector {
    fn jobs(&self, requested: usize) -> usize {
        jobs(requested)
    }

    fn link(&self, target: &Target) -> Result<CaseLink, OpenError> {
        let settings = Builtin::for_case(&self.0, target);
        if target.service() == Service::Agent {
            let listener =
                LinkListener::bind(LOOPBACK).map_err(|error| OpenError::Listen { address: LOOPBACK, error })?;
            let agent = Some(Agent::Here(Box::new(settings)));
            return Ok(CaseLink { link: Link::Accept(listener.link()), start: Some(Start::Virtual), agent });
        }
        let (link, start) = target.service().driver().initiator_over_tcp(settings, target.service())?;
        Ok(CaseLink { link, start: Some(start), agent: None })
    }
}

/// weft's own echo service and `rping -s`. Each of them has its own port.
struct ResponderConnector {
    settings: Settings,
    connect_timeout: Duration,
    echo: SocketAddr,
    rping: SocketAddr,
    server: StopHandle,
    rping_task: AbortHandle,
}

impl ResponderConnector {
    fn open(settings: Settings, connect_timeout: Duration) -> Result<Self, OpenError> {
        let (rping, rping_task) = start_rping(&settings)?;
        let of_server = ServerSettings { connection: settings.clone(), ..ServerSettings::default() };
        let server = Server::bind(LOOPBACK, of_server).map_err(OpenError::Builtin)?;
        let (stop, echo) = (server.stop_handle(), server.local_addr());
        tokio::spawn(server.run());
        Ok(ResponderConnector { settings, connect_timeout, echo, rping, server: stop, rping_task })
    }
}

impl Connector for ResponderConnector {
    fn jobs(&self, requested: usize) -> usize {
        jobs(requested)
    }

    fn link(&self, target: &Target) -> Result<CaseLink, OpenError> {
        let address = match target.service() {
            Service::Agent => LOOPBACK,
            Service::Rping => self.rping,
            _ => self.echo,
        };
        let agent = (target.service() == Service::Agent)
            .then(|| Agent::Here(Box::new(Builtin::for_case(&self.settings, target))));
        let link = Link::Tcp(TcpLink::new(address)).with_connect_timeout(self.connect_timeout);
        Ok(CaseLink { link, start: None, agent })
    }
}

impl Drop for ResponderConnector {
    fn drop(&mut self) {
        self.server.stop();
        self.rping_task.abort();
    }
}

/// Starts `rping -s` on a software RNIC in real time. Returns its address and its task.
fn start_rping(settings: &Settings) -> Result<(SocketAddr, AbortHandle), OpenError> {
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
    Ok((address, serving.abort_handle()))
}

/// Serves one client until it closes.
async fn serve_rping(device: &Device, request: Result<ConnectRequest, CmError>) -> Result<(), WorkloadError> {
    let request = request?;
    let mut server = ping::Server::new(device, RpingServer::SIZE)?;
    server.accept(request)?;
    while server.round().await?.is_some() {}
    server.disconnect().await
}
