//! An implementation under test: a responder at a TCP address, or an initiator that connects to
//! this machine. The port mapper and its clients use UDP.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use weft_peer::driver::{Link, LinkListener, MapperSocket, TcpLink, WireLink, WireStack};

use super::super::description::MapperFacts;
use super::super::host::is_host_and_port;
use super::super::open_error::{CONNECT_SECONDS, OpenError};
use super::super::{Description, Service, Start, Target, TargetFile, Wire, start};
use super::remote::Remote;
use super::{CaseLink, Connector, Kind, KindSettings, Opening, TargetAccess};
use crate::model::Role;

pub(super) const KIND: Kind = Kind {
    name: "tcp",
    about: "An implementation at a TCP address, or an implementation that connects to this machine.",
    read,
};

/// Size in bytes of rping's data buffer, if rping runs without the option `-S`.
const RPING_SIZE: u32 = 64;

/// An implementation under test.
#[derive(Debug, Clone)]
struct Tcp {
    side: Side,
    remote: Remote,
}

/// Which side opens the connection: the tester or the target.
#[derive(Debug, Clone)]
enum Side {
    /// The tester connects to `host:port`, over its own TCP if `wire` is set.
    Responder { address: String, wire: Option<Arc<Wire>> },
    /// The target connects to an address of this machine. The command starts the target. Without a
    /// command, a person starts the target.
    Initiator { listen: SocketAddr, start: Vec<String> },
}

fn read(file: &TargetFile) -> Result<KindSettings, String> {
    let initiates = file.role == Role::Initiator;
    if initiates && (file.address.is_some() || file.listen.is_none()) {
        let remove = if file.address.is_some() { "; remove `address`, because the target connects" } else { "" };
        return Err(format!(
            "role = \"initiator\" needs listen = \"IP:port\", the address of this machine at which weft waits for the target{remove}"
        ));
    }
    if !initiates && (file.address.is_none() || file.listen.is_some()) {
        let remove = if file.listen.is_some() { "; remove `listen`, because weft connects" } else { "" };
        return Err(format!(
            "role = \"responder\" with kind = \"tcp\" needs address = \"host:port\", the address of the target{remove}"
        ));
    }
    if !file.start.is_empty() && (!initiates || file.start[0].is_empty()) {
        return Err("start: expected a command; only an initiator of kind = \"tcp\" has this field".into());
    }
    let is_mapper = file.service == Some(Service::PortMapper);
    if let Some(slip) = start::wrong_placeholder(&file.start, is_mapper) {
        return Err(slip);
    }
    if file.capture.as_ref().is_some_and(String::is_empty) {
        return Err(
            "capture: expected an interface; only kind = \"tcp\" has this field, because builtin targets have no wire"
                .into(),
        );
    }
    let wire = file.wire.as_ref().map(Wire::read).transpose()?.map(Arc::new);
    if wire.is_some() && initiates {
        return Err(
            "wire: the tester's own TCP only connects, so it cannot wait for an initiator; remove this table".into()
        );
    }
    if wire.is_some() && is_mapper {
        return Err(
            "wire: the tester's own TCP sends no UDP, so it cannot query a port mapper; remove this table".into()
        );
    }
    let side = match (&file.address, &file.listen) {
        (Some(address), _) if !is_host_and_port(address) => {
            return Err(format!(
                "address = {address:?}: expected host:port, for example 192.0.2.17:7174, nic-17.example:7174 or [2001:db8::1]:7174"
            ));
        }
        (Some(address), _) => Side::Responder { address: address.clone(), wire },
        (None, listen) => {
            let listen = listen.as_deref().unwrap_or_default().parse().map_err(
                |_| "listen: expected an address of this machine and a port, for example 192.0.2.2:7174 or [2001:db8::2]:0",
            )?;
            Side::Initiator { listen, start: file.start.clone() }
        }
    };
    let remote = Remote::read(file)?;
    let mapper = match file.portmap.service {
        Some(service) => {
            let unmapped = file.portmap.unmapped.unwrap_or(SocketAddr::new(service.ip(), 9));
            let v6 = file.portmap.v6.map(|[mapper, service]| (mapper, service));
            MapperFacts { mapped: service, unmapped, made: None, v6 }
        }
        None if is_mapper && !initiates => {
            return Err("portmap.service: expected the address and port of a service that the target maps".into());
        }
        None => MapperFacts { made: None, v6: None, ..MapperFacts::builtin() },
    };
    if let Side::Initiator { listen, .. } = &side
        && is_mapper
        && listen.ip().is_unspecified()
    {
        return Err(
            "listen: expected the IP address at which the target reaches the tester's port mapper and services".into(),
        );
    }
    let access = Arc::new(Tcp { side, remote });
    Ok(KindSettings { access, service: Service::None, rping_size: RPING_SIZE, mapper })
}

impl TargetAccess for Tcp {
    fn description(&self, target: &Description) -> String {
        let is_mapper = target.service == Service::PortMapper;
        match &self.side {
            Side::Responder { address, .. } if is_mapper => format!("UDP {address}"),
            Side::Responder { address, wire: None } => format!("TCP {address}"),
            Side::Responder { address, wire: Some(wire) } => {
                format!("TCP {address}, with the tester's own TCP at {} on {}", wire.ip(), wire.interface())
            }
            Side::Initiator { listen, start } => {
                let does = if is_mapper { "sends port mapper requests to UDP" } else { "connects to TCP" };
                match start.join(" ") {
                    start if start.is_empty() => format!("it {does} {listen}"),
                    start => format!("it {does} {listen}; start command: {start}"),
                }
            }
        }
    }

    fn remote(&self) -> Option<&Remote> {
        Some(&self.remote)
    }

    fn is_on_this_machine(&self) -> bool {
        let is_loopback = |host: &str| {
            let host = host.trim_matches(['[', ']']);
            host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        };
        match &self.side {
            Side::Responder { address, .. } => address.rsplit_once(':').is_some_and(|(host, _)| is_loopback(host)),
            Side::Initiator { listen, .. } => listen.ip().is_loopback(),
        }
    }

    fn segments_advice(&self) -> Option<&'static str> {
        match self.side {
            Side::Responder { wire: Some(_), .. } => None,
            Side::Responder { wire: None, .. } => {
                Some("To let the tester choose them, declare [wire] in the target file.")
            }
            Side::Initiator { .. } => Some("The tester can choose them only if the target is a Responder."),
        }
    }

    fn host_link(&self, address: SocketAddr, within: Duration) -> Option<Link> {
        let Side::Responder { wire: Some(wire), .. } = &self.side else { return None };
        let link = WireLink::new(&wire.opened()?, address);
        Some(Link::Wire(link).with_connect_timeout(within))
    }

    fn offers(&self, service: Service, _: &Description) -> bool {
        service == Service::Agent && self.remote.agent.is_some()
    }

    fn maps_v6(&self, target: &Description) -> bool {
        match &self.side {
            Side::Initiator { listen, .. } => listen.is_ipv6(),
            Side::Responder { .. } => target.mapper.v6.is_some(),
        }
    }

    fn commands(&self) -> Vec<(&'static str, String)> {
        let start = match &self.side {
            Side::Initiator { start, .. } if !start.is_empty() => Some(("start", start.join(" "))),
            Side::Initiator { .. } | Side::Responder { .. } => None,
        };
        start.into_iter().chain(self.remote.commands()).collect()
    }

    fn open<'t>(&'t self, target: &'t Target) -> Opening<'t> {
        Box::pin(async move {
            let (listen, argv) = match &self.side {
                Side::Responder { address, wire: Some(wire) } => {
                    let address = resolve(address, Some(wire.ip())).await?;
                    let connect_timeout = target.options.scaled(CONNECT_SECONDS);
                    let stack = wire.open(address)?;
                    return Ok(Box::new(WireResponder { address, stack, connect_timeout }) as Box<dyn Connector>);
                }
                Side::Responder { address, wire: None } => {
                    let address = resolve(address, None).await?;
                    let v6 = target.description.mapper.v6.map(|(mapper, _)| mapper);
                    let mappers = [Some(address), v6].into_iter().flatten().collect();
                    let connect_timeout = target.options.scaled(CONNECT_SECONDS);
                    return Ok(Box::new(Responder { address, mappers, connect_timeout }) as Box<dyn Connector>);
                }
                Side::Initiator { listen, start } => (*listen, start),
            };
            let failed = |error| OpenError::Listen { address: listen, error };
            let start = |listener| match argv.is_empty() {
                true => Start::Manual { name: target.name().to_owned() },
                false => Start::Command { argv: argv.clone(), listener },
            };
            Ok(match target.service() {
                Service::PortMapper => {
                    Box::new(MapperClient { mapper: MapperSocket::bind(listen).map_err(failed)?, start: start(None) })
                }
                _ => {
                    let listener = LinkListener::bind(listen).map_err(failed)?;
                    Box::new(Initiator { start: start(Some(listener.clone())), listener }) as Box<dyn Connector>
                }
            })
        })
    }
}

/// Returns the address of `host:port`. If `like` is set, the address has the same IP family.
async fn resolve(address: &str, like: Option<IpAddr>) -> Result<SocketAddr, OpenError> {
    let failed = |error| OpenError::Resolve { address: address.to_owned(), error };
    let mut found = tokio::net::lookup_host(address).await.map_err(failed)?;
    let suits = |found: &SocketAddr| like.is_none_or(|like| like.is_ipv4() == found.is_ipv4());
    found.find(suits).ok_or_else(|| {
        let why = match like {
            None => "the name has no address",
            Some(IpAddr::V4(_)) => "there is no IPv4 address, but the address in [wire] is an IPv4 address",
            Some(IpAddr::V6(_)) => "there is no IPv6 address, but the address in [wire] is an IPv6 address",
        };
        failed(std::io::Error::other(why))
    })
}

/// A target that the tester connects to.
struct Responder {
    address: SocketAddr,
    mappers: Vec<SocketAddr>,
    connect_timeout: Duration,
}

impl Connector for Responder {
    fn link(&self, _: &Target) -> Result<CaseLink, OpenError> {
        let link = Link::Tcp(TcpLink::new(self.address).with_mappers(self.mappers.clone()));
        Ok(CaseLink { link: link.with_connect_timeout(self.connect_timeout), start: None, agent: None })
    }
}

/// A target that the tester connects to, over its own TCP.
struct WireResponder {
    address: SocketAddr,
    stack: WireStack,
    connect_timeout: Duration,
}

impl Connector for WireResponder {
    fn link(&self, _: &Target) -> Result<CaseLink, OpenError> {
        let link = Link::Wire(WireLink::new(&self.stack, self.address));
        Ok(CaseLink { link: link.with_connect_timeout(self.connect_timeout), start: None, agent: None })
    }
}

/// A target that connects to the tester.
struct Initiator {
    listener: LinkListener,
    start: Start,
}

impl Connector for Initiator {
    fn link(&self, _: &Target) -> Result<CaseLink, OpenError> {
        Ok(CaseLink { link: Link::Accept(self.listener.link()), start: Some(self.start.clone()), agent: None })
    }
}

/// A target that first sends a request to the tester's port mapper.
struct MapperClient {
    mapper: MapperSocket,
    start: Start,
}

impl Connector for MapperClient {
    fn link(&self, _: &Target) -> Result<CaseLink, OpenError> {
        Ok(CaseLink { link: Link::Mapper(self.mapper.link()), start: Some(self.start.clone()), agent: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_literals_are_addresses() {
        for address in ["nic-17.example:1", "[2001:db8::1]:65535", "[fe80::1%eth0]:7174", "127.0.0.1:7174"] {
            assert!(is_host_and_port(address), "{address}");
        }
    }
}
