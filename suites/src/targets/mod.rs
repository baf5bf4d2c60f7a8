//! The implementation under test: how to reach it, what runs on it, what it can do.
//!
//! A [`Target`] is a description, from a TOML file or by name (`builtin`, `builtin-tcp`). [`Live`]
//! is the target while a run lasts: it gives each case a link of its own.

mod check;
mod command;
mod declared;
mod fields;
mod file;
pub(crate) mod host;
mod live;
mod preset;
mod service;
mod start;
mod token;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use weft_core::wire::sdp::FieldOrder;
use weft_peer::Deviations;
use weft_peer::driver::VirtualLink;
use weft_peer::hostile::Deviation;
use weft_peer::service::RpingServer;

pub use check::{Probe, check};
pub(crate) use command::{CRASHED_SECONDS, LocalCommand, RESTART_SECONDS};
pub(crate) use declared::differences_of;
pub use fields::{AgentField, EnhancedTable, MapperTable, RtrKind, SdpTable, StartupTable, TargetFile, TargetKind};
pub(crate) use live::{LOOPBACK, Reached, sdp_link};
pub use live::{Live, OpenError};
pub use preset::{PRESETS, Preset};
pub use service::Service;
pub(crate) use start::{COMMAND_SECONDS, PERSON_SECONDS, Running, Start};

use crate::agent::{AgentAt, Way};
use crate::baseline::BaselineEntry;
use crate::correct::StartupFields;
use crate::model::{Capability, Role, TargetInfo, Verdict};
pub use crate::stage::SdpStart;

/// A described target.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) name: String,
    pub(crate) kind: TargetKind,
    pub(crate) address: Option<String>,
    pub(crate) role: Role,
    pub(crate) service: Service,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) time_scale: f64,
    pub(crate) deviations: Deviations,
    pub(crate) request: StartupFields,
    pub(crate) settle: Duration,
    /// Octets that `rping -s` has for its data.
    pub(crate) rping_size: u32,
    pub(crate) baseline: Vec<BaselineEntry>,
    /// Brings it back when it is dead.
    pub(crate) restart: Option<LocalCommand>,
    /// Says whether it has crashed.
    pub(crate) crashed: Option<LocalCommand>,
    /// How SDP connections are started.
    pub(crate) sdp_start: SdpStart,
    /// Field order of SDP messages.
    pub(crate) sdp_order: FieldOrder,
    /// A service that the port mapper maps, and one that it does not.
    pub(crate) mapped: SocketAddr,
    pub(crate) unmapped: SocketAddr,
    /// The port mapper over IPv6, and a service of that family.
    pub(crate) mapper_v6: Option<(SocketAddr, SocketAddr)>,
    /// Where an initiator is waited for.
    pub(crate) listen: Option<SocketAddr>,
    /// The command that starts an initiator; without one a person does.
    pub(crate) start: Vec<String>,
    /// A builtin initiator asks for the peer-to-peer model of RFC 6581: cases that need it say so.
    pub(crate) asks_enhanced: bool,
    /// The case is for a target that asks for markers: a builtin one does then, and the tester's
    /// own exchanges have them.
    pub(crate) asks_markers: bool,
    /// A builtin target asks for no CRCs, and knows nothing of RFC 6581.
    pub(crate) plain: bool,
    /// What drives its verbs, where that is on another host.
    pub(crate) agent: Option<AgentAt>,
    /// The interface that is captured on while a run lasts, for evidence from the wire.
    pub(crate) capture: Option<String>,
}

/// Why a target is not understood.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The file cannot be read.
    #[error("{file}: {}", unreadable(.error))]
    Read {
        /// The file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// No such file, and no builtin target of the name.
    #[error("{name}: there is no such file, and no target of that name; {}", meant(.name))]
    Unknown {
        /// As it was given.
        name: String,
    },
    /// The file is no TOML, or has a field that is unknown, missing or of another type. The line is
    /// not shown, for it may have the agent's token.
    #[error("{file}: {place}{message}")]
    Toml {
        /// The file.
        file: String,
        /// Line and column, where they are known.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// The fields do not make sense together.
    #[error("{file}: {message}")]
    Sense {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// A deviation that does not exist, or one of a target that is not builtin.
    #[error("{0}")]
    Deviation(String),
}

/// The ports of a service that the builtin port mapper maps, and of one that it does not.
pub(crate) const MAPPED: u16 = 5001;
const UNMAPPED: u16 = 5999;
/// A service that it maps to a port of its own for each Request.
pub(crate) const MADE: u16 = 5002;

/// The builtin targets.
const BUILTIN: [&str; 5] = ["builtin", "builtin-tcp", "builtin-plain", "builtin-initiator", "builtin-initiator-tcp"];

fn meant(name: &str) -> String {
    match weft_core::spelling::nearest(name, BUILTIN) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are {}, and TOML files that describe others", BUILTIN.join(", ")),
    }
}

fn unreadable(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::IsADirectory => "is a directory; name a TOML file that describes a target".to_owned(),
        ErrorKind::InvalidData => "is no text; name a TOML file that describes a target".to_owned(),
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "may not be read: permission denied".to_owned(),
        _ => error.to_string(),
    }
}

impl Target {
    /// Is it the name of a target that needs no file?
    #[must_use]
    pub fn is_builtin_name(name: &str) -> bool {
        BUILTIN.contains(&name)
    }

    /// True if a target may have this name. The name is also that of a folder for the target's
    /// runs, so it must not lead out of the folder above or hide there.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !name.is_empty() && !name.starts_with('.') && name.chars().all(is_allowed)
    }

    /// The target that a command line names: `builtin`, `builtin-tcp`, `builtin-plain`,
    /// `builtin-initiator`, `builtin-initiator-tcp`, or a TOML file.
    ///
    /// # Errors
    /// The file is not understood.
    pub fn resolve(name: &str) -> Result<Self, TargetError> {
        match name {
            "builtin" => Ok(Self::builtin()),
            "builtin-tcp" => Ok(Self::builtin_tcp()),
            "builtin-plain" => Ok(Self::builtin_plain()),
            "builtin-initiator" => Ok(Self::builtin_initiator()),
            "builtin-initiator-tcp" => {
                Ok(Target { kind: TargetKind::BuiltinTcp, ..Self::builtin_initiator() }.renamed(name))
            }
            file => Self::from_file(Path::new(file)).map_err(|error| match error {
                TargetError::Read { file, error } if error.kind() == std::io::ErrorKind::NotFound => {
                    TargetError::Unknown { name: file }
                }
                error => error,
            }),
        }
    }

    /// weft's own responder with the echo service, in process, with a virtual clock.
    #[must_use]
    pub fn builtin() -> Self {
        Target {
            name: "builtin".into(),
            kind: TargetKind::Builtin,
            address: None,
            role: Role::Responder,
            service: Service::Echo,
            capabilities: vec![
                Capability::AsksForMarkers,
                Capability::Atomics,
                Capability::Crc,
                Capability::Markers,
                Capability::Revision1,
                Capability::Revision2,
            ],
            time_scale: 1.0,
            deviations: Deviations::default(),
            request: StartupFields::REQUEST,
            settle: Duration::ZERO,
            rping_size: RpingServer::SIZE,
            baseline: Vec::new(),
            restart: None,
            crashed: None,
            sdp_start: SdpStart::default(),
            sdp_order: FieldOrder::default(),
            mapped: SocketAddr::new(VirtualLink::TARGET.ip(), MAPPED),
            unmapped: SocketAddr::new(VirtualLink::TARGET.ip(), UNMAPPED),
            mapper_v6: Some((
                VirtualLink::mapper(true, false),
                SocketAddr::new(VirtualLink::mapper(true, false).ip(), MAPPED),
            )),
            listen: None,
            start: Vec::new(),
            asks_enhanced: false,
            asks_markers: false,
            plain: false,
            agent: None,
            capture: None,
        }
    }

    /// The same without what an endpoint may do without: it asks for no CRCs, and knows nothing of
    /// RFC 6581.
    #[must_use]
    pub fn builtin_plain() -> Self {
        let builtin = Self::builtin();
        let capabilities = builtin.without(&[Capability::Crc, Capability::Revision2]);
        let told_so = BaselineEntry {
            case: "mpa/7.1.1-flags/asks-for-crc".into(),
            outcome: Verdict::Fail,
            signature: "MPA-4.4-5".into(),
            reason: "it was told to do without CRCs".into(),
            link: None,
        };
        Target { name: "builtin-plain".into(), capabilities, plain: true, baseline: vec![told_so], ..builtin }
    }

    /// weft's own initiator, in process, with a virtual clock: it opens with a Send and echoes, or
    /// is `rping -c`.
    #[must_use]
    pub fn builtin_initiator() -> Self {
        Target { name: "builtin-initiator".into(), role: Role::Initiator, ..Self::builtin() }
    }

    fn renamed(self, name: &str) -> Self {
        Target { name: name.to_owned(), ..self }
    }

    /// The same over real TCP, on a loopback port of its own. All cases share one server there, and
    /// it asks for no markers.
    #[must_use]
    pub fn builtin_tcp() -> Self {
        let builtin = Self::builtin();
        let capabilities = builtin.without(&[Capability::AsksForMarkers]);
        Target { name: "builtin-tcp".into(), kind: TargetKind::BuiltinTcp, capabilities, ..builtin }
    }

    /// Its capabilities but for these.
    fn without(&self, lacks: &[Capability]) -> Vec<Capability> {
        self.capabilities.iter().copied().filter(|capability| !lacks.contains(capability)).collect()
    }

    /// Switches deviations on.
    ///
    /// # Errors
    /// A name is unknown, or the target is not builtin.
    pub fn with_deviations<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, TargetError> {
        for name in names {
            if self.kind == TargetKind::Tcp {
                let message = format!("{name}: only the builtin targets deviate on request; {} is not one", self.name);
                return Err(TargetError::Deviation(message));
            }
            let known = weft_peer::hostile::by_name(name).map_err(|error| TargetError::Deviation(error.to_string()))?;
            self.deviations.insert(known);
        }
        Ok(self)
    }

    /// The target's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Outcomes that are known and expected.
    #[must_use]
    pub fn baseline(&self) -> &[BaselineEntry] {
        &self.baseline
    }

    /// A builtin target with one more deviation.
    pub(crate) fn deviating(mut self, deviation: &'static Deviation) -> Self {
        self.deviations.insert(deviation);
        self
    }

    /// Captures on `interface` while a run lasts, so that its evidence is what was on the wire.
    /// `None` where there is no wire, or weft on both ends of it.
    #[must_use]
    pub fn captured_on(self, interface: String) -> Option<Self> {
        (self.kind == TargetKind::Tcp).then_some(Target { capture: Some(interface), ..self })
    }

    /// Outcomes that are known and expected, instead of those that its file has.
    #[must_use]
    pub fn with_baseline(self, baseline: Vec<BaselineEntry>) -> Self {
        Target { baseline, ..self }
    }

    /// Does its file have the token of its agent?
    #[must_use]
    pub fn keeps_token(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.token_in_file)
    }

    /// The commands that a run, or a check, of this target executes on this machine: the field of
    /// its file, and the command line.
    #[must_use]
    pub fn commands(&self) -> Vec<(&'static str, String)> {
        let mut commands = Vec::new();
        if !self.start.is_empty() {
            commands.push(("start", self.start.join(" ")));
        }
        for (field, command) in [("restart", &self.restart), ("crashed", &self.crashed)] {
            commands.extend(command.iter().map(|command| (field, command.to_string())));
        }
        if let Some(AgentAt { way: way @ Way::Command(_), .. }) = &self.agent {
            commands.push(("agent", way.to_string()));
        }
        commands
    }

    /// What reports say about it.
    #[must_use]
    pub fn info(&self) -> TargetInfo {
        TargetInfo {
            name: self.name.clone(),
            reached_by: match (self.kind, &self.address) {
                (TargetKind::Builtin, _) => "in process, virtual clock".into(),
                (TargetKind::BuiltinTcp, _) => "loopback TCP".into(),
                (TargetKind::Tcp, Some(address)) if self.service == Service::PortMapper => format!("UDP {address}"),
                (TargetKind::Tcp, Some(address)) => format!("TCP {address}"),
                (TargetKind::Tcp, None) => {
                    let does = if self.service == Service::PortMapper { "asks at UDP" } else { "connects to TCP" };
                    let listen = self.listen.map(|at| at.to_string()).unwrap_or_default();
                    match self.start.join(" ") {
                        start if start.is_empty() => format!("it {does} {listen}"),
                        start => format!("it {does} {listen}, started by: {start}"),
                    }
                }
            },
            role: self.role,
            service: self.service.as_str().into(),
            capabilities: self.capabilities.clone(),
            deviations: self.deviations.iter().map(|deviation| deviation.name.to_owned()).collect(),
        }
    }

    /// Can several cases be run at a time against it? Others would disturb each other.
    #[must_use]
    pub fn runs_several_cases(&self) -> bool {
        self.kind != TargetKind::Tcp
    }

    /// Is it one of weft's own, with all that they offer?
    pub(crate) fn is_builtin(&self) -> bool {
        self.kind == TargetKind::Builtin
    }

    /// Does this service run on it?
    pub(crate) fn offers(&self, service: Service) -> bool {
        let builtin = match self.kind {
            TargetKind::Builtin => service != Service::None,
            TargetKind::BuiltinTcp => match service {
                Service::PortMapper => self.role == Role::Initiator,
                other => matches!(other, Service::Agent | Service::Echo | Service::Rping),
            },
            TargetKind::Tcp => service == Service::Agent && self.agent.is_some(),
        };
        self.service == service || builtin
    }

    /// Which service a case with these needs is run against.
    pub(crate) fn service_for(&self, capabilities: &[Capability]) -> Service {
        let is_wanted = |service: &Service| match service {
            Service::SdpEcho if capabilities.contains(&Capability::Sdp) && !self.service.is_sdp() => true,
            service => {
                service.driver().capability().is_some_and(|it| capabilities.contains(&it)) && self.offers(*service)
            }
        };
        Service::ALL.into_iter().find(is_wanted).unwrap_or(self.service)
    }

    /// Does a target that asks a port mapper connect then where it was sent?
    pub(crate) fn connects(&self) -> bool {
        self.kind != TargetKind::Tcp || self.capabilities.contains(&Capability::PmConnect)
    }

    /// Does it map over IPv6, or ask?
    pub(crate) fn maps_v6(&self) -> bool {
        match self.listen {
            Some(listen) => listen.is_ipv6(),
            // Over the loopback interface it asks by IPv4.
            None => self.mapper_v6.is_some() && self.kind != TargetKind::BuiltinTcp,
        }
    }

    /// `seconds` as this target's time scale stretches them.
    pub(crate) fn scaled(&self, seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds * self.time_scale).unwrap_or(Duration::MAX)
    }
}
