//! Code for all commands that use the software RNIC: options of the MPA start-up, opening the
//! device, resolving addresses, and turning errors into exit codes.

use std::io;
use std::net::{IpAddr, SocketAddr};

use weft_peer::Deviations;
use weft_peer::driver::cm::{CmSettings, Connected, Listener};
use weft_peer::driver::device::{DeviceSettings, random_seed};
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::hostile::mangle::Mangling;
use weft_peer::memory::MemorySettings;
use weft_peer::mpa::{Depth, EnhancedUse, Model, MpaSettings, Rtr, RtrKinds};
use weft_peer::verbs::{Node, RnicSettings};
use weft_peer::workload::WorkloadError;

use crate::exit::{BadInput, CommandFailure, HARNESS, UNEXPECTED, UNREACHABLE, reject};
use crate::mangle::MangleArguments;
use crate::one_of::one_of;
use crate::watch::WatchArguments;

/// Options for the MPA start-up of a connection.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "MPA start-up")]
pub(crate) struct MpaArguments {
    /// Send an MPA Request of this revision
    ///
    /// Revision 2 (RFC 6581) also negotiates how many RDMA Reads may be outstanding (--ird, --ord).
    #[arg(long, value_name = "REVISION", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    mpa_revision: u8,
    /// Retry with revision 1 if the peer ignores revision 2 or closes the connection
    #[arg(long, conflicts_with = "rtr")]
    fall_back: bool,
    /// Do not request CRCs
    ///
    /// If the peer requests CRCs, the connection has CRCs despite this option.
    #[arg(long)]
    no_crc: bool,
    /// Request MPA markers from the peer (many RNICs reject such a Request)
    #[arg(long)]
    markers: bool,
    /// Start in peer-to-peer mode with a ready-to-receive message of this kind
    ///
    /// The connecting side sends this message first. After this message, the accepting side may
    /// send, too (RFC 6581). With --mpa-revision 1, both sides need this option.
    #[arg(long, value_name = "KIND", value_parser = one_of([
        ("read", "A zero-length RDMA Read", Rtr::Read),
        ("send", "A zero-length Send", Rtr::Send),
        ("write", "A zero-length RDMA Write", Rtr::Write),
    ]))]
    rtr: Option<Rtr>,
    /// Accept at most this many outstanding RDMA Reads from the peer (IRD)
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(..=128))]
    ird: u16,
    /// Keep at most this many RDMA Reads of this side outstanding (ORD)
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(..=128))]
    ord: u16,
}

impl MpaArguments {
    /// Returns IRD and ORD of this side.
    pub(crate) fn depths(&self) -> (u32, u32) {
        (self.ird.into(), self.ord.into())
    }

    /// Returns the settings for one connection.
    pub(crate) fn settings(&self) -> CmSettings {
        let mut mpa = MpaSettings { crc: !self.no_crc, markers: self.markers, ..MpaSettings::default() };
        if self.mpa_revision == 2 {
            mpa.enhanced = EnhancedUse::Request;
        } else {
            mpa.agreed_rtr = self.rtr;
        }
        let enhanced = &mut mpa.enhanced_settings;
        (enhanced.ird, enhanced.ord) = (Depth::negotiated(self.ird), Depth::negotiated(self.ord));
        if let Some(kind) = self.rtr {
            enhanced.model = Model::PeerToPeer;
            enhanced.rtr = RtrKinds::only(kind);
            enhanced.preferred_rtr = kind;
        }
        CmSettings { mpa, fall_back: self.fall_back, ..CmSettings::default() }
    }
}

/// The options that select the client or the server side of a command, and the server's address.
#[derive(Debug, clap::Args)]
pub(crate) struct SideArguments {
    /// Run as server
    #[arg(short = 's', long)]
    pub(crate) server: bool,
    /// Run as client
    #[arg(short = 'c', long, conflicts_with = "server", requires = "address")]
    pub(crate) client: bool,
    /// Client: connect to this host; server: listen on this address (default 0.0.0.0)
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Use this TCP port; on a server, 0 means a free port, which weft prints
    #[arg(short = 'p', long, default_value_t = 7174)]
    pub(crate) port: u16,
}

impl SideArguments {
    /// Resolves the address to connect to, or to listen on.
    pub(crate) async fn resolve(&self) -> anyhow::Result<SocketAddr> {
        resolve(self.address.as_deref().unwrap_or("0.0.0.0"), self.port).await
    }
}

/// The options of a software RNIC that records its traffic, and that can damage the traffic on
/// purpose.
#[derive(Debug, clap::Args)]
pub(crate) struct RnicArguments {
    #[command(flatten)]
    pub(crate) mpa: MpaArguments,
    #[command(flatten)]
    mangle: MangleArguments,
    #[command(flatten)]
    pub(crate) watch: WatchArguments,
}

impl RnicArguments {
    /// Opens the RNIC, which records its traffic in `traffic`.
    pub(crate) fn open(&self, traffic: Option<TrafficLog>) -> anyhow::Result<Device> {
        open(traffic, self.mangle.mangling())
    }
}

/// Parses the names of `--deviate`.
pub(crate) fn deviations(names: &[String]) -> Result<Deviations, BadInput> {
    Deviations::from_names(names.iter().map(String::as_str)).map_err(|error| BadInput(error.to_string()))
}

/// Opens a software RNIC that records its traffic in `traffic`, and damages the sent traffic with
/// `mangling`.
pub(crate) fn open(traffic: Option<TrafficLog>, mangling: Option<Mangling>) -> anyhow::Result<Device> {
    open_with(DeviceSettings { traffic, mangling, ..DeviceSettings::default() })
}

/// Opens a software RNIC with default limits.
pub(crate) fn open_with(settings: DeviceSettings) -> anyhow::Result<Device> {
    open_as(settings, RnicSettings::default())
}

/// Opens a software RNIC with these settings and a random start for its STags.
pub(crate) fn open_as(settings: DeviceSettings, rnic: RnicSettings) -> anyhow::Result<Device> {
    let memory = MemorySettings { stag_seed: random_seed(), ..rnic.memory };
    let (rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings { memory, ..rnic })?;
    Ok(Device::with(rnic, settings))
}

/// Resolves a host name, or parses an address. An IPv6 address can be in brackets.
pub(crate) async fn resolve(host: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((host, port)).await.map(|mut all| all.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(BadInput(format!("{host} has no address")).into()),
        Err(error) => Err(BadInput(format!("cannot resolve {host}: {error}; use an address or another name")).into()),
    }
}

/// Parses and resolves HOST:PORT. If there is a default `port`, HOST alone is valid, too.
pub(crate) async fn host_and_port(text: &str, port: Option<u16>) -> anyhow::Result<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare: Option<IpAddr> = text.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let (host, port) = match (bare, text.rsplit_once(':'), port) {
        (Some(_), _, Some(port)) | (None, None, Some(port)) => (text, port),
        (None, Some((host, number)), _) if !host.is_empty() => {
            (host, number.parse().map_err(|_| BadInput(format!("{number:?} is not a port; use 1 to 65535")))?)
        }
        _ => reject!("{text:?} is not HOST:PORT"),
    };
    resolve(host, port).await
}

/// Listens for connections to the device.
pub(crate) fn listen(device: &Device, address: SocketAddr, settings: CmSettings) -> Result<Listener, BadInput> {
    Listener::bind(device, address, settings).map_err(|error| cannot_listen(address, &error))
}

/// Makes the error for a failed attempt to listen. If weft knows a remedy, the message has it.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> BadInput {
    let port = address.port();
    BadInput(format!(
        "cannot listen on {address}: {}",
        match error.kind() {
            io::ErrorKind::AddrInUse => format!("port {port} is in use; use port 0 for a free port"),
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
            io::ErrorKind::PermissionDenied => format!("port {port} needs privileges; use port 1024 or higher"),
            _ => error.to_string(),
        }
    ))
}

/// Makes the error for a connection that could not be established.
pub(crate) fn unreachable(address: SocketAddr, error: &dyn std::fmt::Display) -> anyhow::Error {
    CommandFailure { code: UNREACHABLE, text: format!("cannot connect to {address}: {error}") }.into()
}

/// Makes the error for a workload that did not start.
pub(crate) fn start_error(address: SocketAddr) -> impl Fn(WorkloadError) -> anyhow::Error {
    move |error| match error {
        WorkloadError::Cm(error) => unreachable(address, &error),
        error => workload_error(error),
    }
}

/// Turns the error of a workload into a message with an exit code.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
pub(crate) fn workload_error(error: WorkloadError) -> anyhow::Error {
    let code = match error {
        WorkloadError::Cm(_) => UNREACHABLE,
        WorkloadError::Differs(_)
        | WorkloadError::Ended { .. }
        | WorkloadError::Failed { .. }
        | WorkloadError::Mismatch { .. }
        | WorkloadError::Protocol(_)
        | WorkloadError::TimedOut(_) => UNEXPECTED,
        WorkloadError::Buffer(_)
        | WorkloadError::Cq(_)
        | WorkloadError::Local(_)
        | WorkloadError::Memory(_)
        | WorkloadError::Post(_)
        | WorkloadError::Qp(_) => HARNESS,
    };
    CommandFailure { code, text: error.to_string() }.into()
}

/// Describes the negotiated parameters in one line.
pub(crate) fn agreed(connected: &Connected) -> String {
    let negotiated = &connected.negotiated;
    let on = |on| if on { "on" } else { "off" };
    let depths =
        negotiated.enhanced.map_or_else(String::new, |agreed| format!(", IRD {} ORD {}", agreed.ird, agreed.ord));
    let ready = Rtr::ALL.into_iter().filter(|kind| negotiated.rtr.contains(*kind)).map(|kind| format!(" {kind:?}"));
    let ready: String = ready.collect();
    let ready = if ready.is_empty() { ready } else { format!(", ready-to-receive:{ready}") };
    let revision = negotiated.peer_revision;
    let (crc, to, from) = (on(negotiated.crc), on(negotiated.markers_sent), on(negotiated.markers_received));
    format!("peer's revision {revision}, CRC {crc}, markers to the peer {to}, from the peer {from}{depths}{ready}")
}
