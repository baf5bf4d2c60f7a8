//! The implementation under test: how to reach it, what runs on it, what it can do.
//!
//! A [`Target`] consists of a description, a way to reach the target, and options. It comes from a
//! TOML file or a builtin name (`builtin`, `builtin-tcp`). During a run, the target is open as an
//! [`OpenTarget`], which creates a link for each case. The kinds of targets are in the folder
//! `kind`.

mod baseline;
mod check;
mod command;
mod declared;
mod description;
mod device;
pub(crate) mod down;
mod driver_command;
mod error;
mod facts;
mod fields;
mod file;
pub(crate) mod host;
mod kind;
mod live;
mod markers;
mod new_file;
mod open_error;
mod options;
mod preset;
mod sdp_start;
mod service;
mod start;
mod token;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weft_peer::driver::Link;
use weft_peer::hostile::Deviation;

pub use baseline::read_baseline;
pub use check::{DiscoverError, Probe, check, discover};
pub(crate) use command::{CRASHED_SECONDS, RESTART_SECONDS};
pub(crate) use declared::differences;
pub(crate) use description::Description;
pub(crate) use device::{device_facts, device_of};
pub use driver_command::DriverCommand;
pub use error::{TargetError, example_file};
pub use facts::Facts;
pub use fields::{
    AgentField, EnhancedTable, LimitsTable, MapperTable, RtrKind, SdpTable, StartupTable, TargetFile, WireTable,
};
pub use kind::KindName;
pub(crate) use kind::{CaseLink, LOOPBACK, Remote, sdp_link};
pub use live::OpenTarget;
pub use markers::MarkerDirections;
pub use new_file::new_file;
pub use open_error::OpenError;
pub(crate) use open_error::unresolved;
pub(crate) use options::TargetOptions;
pub use preset::{PRESETS, Preset};
pub use service::Service;
pub(crate) use start::{COMMAND_SECONDS, MANUAL_SECONDS, Running, Start};
pub(crate) use wire::Wire;

use crate::baseline::BaselineEntry;
use crate::model::{Capability, Role, TargetInfo, Verdict};
use kind::{Builtin, InProcess, Loopback, TargetAccess};
pub use sdp_start::SdpStart;

/// An implementation under test.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) description: Description,
    pub(crate) access: Arc<dyn TargetAccess>,
    pub(crate) options: TargetOptions,
}

/// The builtin targets.
const BUILTIN: [&str; 5] = ["builtin", "builtin-tcp", "builtin-plain", "builtin-initiator", "builtin-initiator-tcp"];

impl Target {
    /// Returns whether `name` is the name of a builtin target, which needs no file.
    #[must_use]
    pub fn is_builtin_name(name: &str) -> bool {
        BUILTIN.contains(&name)
    }

    /// Returns whether a target may have this name. The target's runs are in a folder of the same
    /// name. So the name must not lead out of the parent folder, and the folder must not be hidden.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !name.is_empty() && !name.starts_with('.') && name.chars().all(is_allowed)
    }

    /// Returns the target that a command line names: `builtin`, `builtin-tcp`, `builtin-plain`,
    /// `builtin-initiator`, `builtin-initiator-tcp`, or a TOML file.
    ///
    /// # Errors
    /// The file cannot be read, or its fields are wrong.
    pub fn resolve(name: &str) -> Result<Self, TargetError> {
        match name {
            "builtin" => Ok(Self::builtin()),
            "builtin-tcp" => Ok(Self::builtin_tcp()),
            "builtin-plain" => Ok(Self::builtin_plain()),
            "builtin-initiator" => Ok(Self::builtin_initiator()),
            "builtin-initiator-tcp" => Ok(Self::builtin_initiator_tcp()),
            file => Self::from_file(Path::new(file)).map_err(|error| match error {
                TargetError::Read { file, error } if error.kind() == std::io::ErrorKind::NotFound => {
                    TargetError::Unknown { name: file }
                }
                error => error,
            }),
        }
    }

    fn builtin_of(description: Description, access: impl TargetAccess + 'static) -> Self {
        Target { description, access: Arc::new(access), options: TargetOptions::default() }
    }

    /// weft's own responder with the echo service, inside weft's process, with a virtual clock.
    #[must_use]
    pub fn builtin() -> Self {
        Self::builtin_of(Description::builtin(), InProcess::default())
    }

    /// The builtin responder without optional features: it requests no CRCs, and does not implement
    /// RFC 6581.
    #[must_use]
    pub fn builtin_plain() -> Self {
        let requests_no_crc = BaselineEntry {
            case: "mpa/7.1.1-flags/asks-for-crc".into(),
            outcome: Verdict::Fail,
            signature: "MPA-4.4-5".into(),
            reason: "builtin-plain is configured without CRCs".into(),
            link: None,
        };
        let mut description = Description::builtin();
        description.name = "builtin-plain".into();
        description.baseline = vec![requests_no_crc];
        description.remove_capabilities(&[Capability::Crc, Capability::Revision2]);
        Self::builtin_of(description, InProcess(Builtin { plain: true, ..Builtin::default() }))
    }

    /// weft's own initiator, inside weft's process, with a virtual clock. With the service echo, it
    /// sends a Send first and then echoes. With the service rping, it acts as `rping -c`.
    #[must_use]
    pub fn builtin_initiator() -> Self {
        let description =
            Description { name: "builtin-initiator".into(), role: Role::Initiator, ..Description::builtin() };
        Self::builtin_of(description, InProcess::default())
    }

    /// weft's own responder over real TCP, on a loopback port. All cases share one server. The
    /// responder requests no markers.
    #[must_use]
    pub fn builtin_tcp() -> Self {
        let mut description = Description { name: "builtin-tcp".into(), ..Description::builtin() };
        description.remove_capabilities(&[Capability::AsksForMarkers]);
        Self::builtin_of(description, Loopback::default())
    }

    /// weft's own initiator over real TCP.
    fn builtin_initiator_tcp() -> Self {
        let description =
            Description { name: "builtin-initiator-tcp".into(), role: Role::Initiator, ..Description::builtin() };
        Self::builtin_of(description, Loopback::default())
    }

    /// Enables deviations, which are deliberate faults of a builtin target.
    ///
    /// # Errors
    /// A name is unknown, or the target is not builtin.
    pub fn with_deviations<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, TargetError> {
        for name in names {
            if self.access.builtin().is_none() {
                let message = format!("{name}: only builtin targets accept deviations; {} is not builtin", self.name());
                return Err(TargetError::Deviation(message));
            }
            let known = weft_peer::hostile::by_name(name).map_err(|error| TargetError::Deviation(error.to_string()))?;
            self = self.deviating(known);
        }
        Ok(self)
    }

    /// The target's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Outcomes that are known and expected.
    #[must_use]
    pub fn baseline(&self) -> &[BaselineEntry] {
        &self.description.baseline
    }

    /// The target's role.
    pub(crate) fn role(&self) -> Role {
        self.description.role
    }

    /// The service that runs on the target.
    pub(crate) fn service(&self) -> Service {
        self.description.service
    }

    /// The target's capabilities.
    pub(crate) fn capabilities(&self) -> &[Capability] {
        &self.description.capabilities
    }

    /// The host of an implementation under test. `None` for a builtin target.
    pub(crate) fn remote(&self) -> Option<&Remote> {
        self.access.remote()
    }

    /// Returns a link on which weft checks whether the target's host answers. Returns `None` if the
    /// TCP of the operating system reaches the host.
    pub(crate) fn host_link(&self, address: SocketAddr, within: Duration) -> Option<Link> {
        self.access.host_link(address, within)
    }

    /// Returns whether waiting for the target takes no wall time.
    #[must_use]
    pub fn has_virtual_clock(&self) -> bool {
        self.access.has_virtual_clock()
    }

    /// Returns a sentence for the user: what to change so that the tester chooses its TCP segments.
    /// Returns `None` if the tester already chooses them.
    pub(crate) fn segments_advice(&self) -> Option<&'static str> {
        self.access.segments_advice()
    }

    /// Returns whether the target's TCP connections stay on this machine.
    pub(crate) fn is_on_this_machine(&self) -> bool {
        self.access.is_on_this_machine()
    }

    /// Maximum payload in bytes of a DDP segment that fits into one TCP segment. Over Ethernet, a
    /// TCP segment has 1,460 bytes. On this machine, it can be much longer. The headers and the CRC
    /// of an FPDU use a part of the TCP segment. With markers, the payload must be smaller. A ULPDU
    /// has at most 64,768 bytes (MPA-3-4), of which DDP's header of a Send has 18.
    pub(crate) fn max_segment(&self) -> u32 {
        if self.is_on_this_machine() { 64_750 } else { 1432 }
    }

    /// Size in bytes of rping's data buffer.
    pub(crate) fn rping_size(&self) -> u32 {
        self.description.rping_size
    }

    /// Returns a builtin target with one more deviation. If the target is not builtin, returns it
    /// unchanged.
    pub(crate) fn deviating(mut self, deviation: &'static Deviation) -> Self {
        if let Some(access) = self.access.with_deviation(deviation) {
            self.access = access;
        }
        self
    }

    /// Returns the same target with another of its services.
    pub(crate) fn with_service(&self, service: Service) -> Self {
        let mut target = self.clone();
        target.description.service = service;
        target
    }

    /// Enables a capture on `interface` during a run, so that the evidence shows the traffic on the
    /// wire. Returns `None` for a builtin target, because weft is on both ends of its connections.
    #[must_use]
    pub fn captured_on(mut self, interface: String) -> Option<Self> {
        self.options.capture = Some(interface);
        self.access.builtin().is_none().then_some(self)
    }

    /// Replaces the baseline, the list of known and expected outcomes.
    #[must_use]
    pub fn with_baseline(mut self, baseline: Vec<BaselineEntry>) -> Self {
        self.description.baseline = baseline;
        self
    }

    /// Adds labels to those of the target file. A new value replaces that of the target file.
    #[must_use]
    pub fn with_labels(mut self, labels: impl IntoIterator<Item = (String, String)>) -> Self {
        self.options.labels.extend(labels);
        self
    }

    /// Returns whether the target file contains the agent's token.
    #[must_use]
    pub fn keeps_token(&self) -> bool {
        self.remote().and_then(|remote| remote.agent.as_ref()).is_some_and(|agent| agent.token_in_file)
    }

    /// Returns the commands that a run or a check of this target executes on this machine. Each
    /// entry has the name of the field in the target file, and the command line.
    #[must_use]
    pub fn commands(&self) -> Vec<(&'static str, String)> {
        self.access.commands()
    }

    /// Returns the target's part of a report, without facts of the agent.
    #[must_use]
    pub fn info(&self) -> TargetInfo {
        let deviations = self.access.builtin().map(|builtin| &builtin.deviations);
        TargetInfo {
            name: self.description.name.clone(),
            file: self.options.file.clone(),
            reached_by: self.access.description(&self.description),
            role: self.role(),
            service: self.service().as_str().into(),
            capabilities: self.description.capabilities.clone(),
            deviations: deviations
                .map(|deviations| deviations.iter().map(|deviation| deviation.name.to_owned()).collect())
                .unwrap_or_default(),
            identity: self.description.identity.clone(),
            device: Default::default(),
            probed: self.options.probed.clone(),
            probed_facts: self.options.probed_facts.clone(),
            lost_capabilities: self.options.lost_capabilities.clone().unwrap_or_default(),
        }
    }

    /// Returns whether several cases may run at the same time. On a target that is not builtin,
    /// several cases would disturb each other.
    #[must_use]
    pub fn runs_several_cases(&self) -> bool {
        self.access.builtin().is_some()
    }

    /// Returns whether this service runs on the target.
    pub(crate) fn offers(&self, service: Service) -> bool {
        self.service() == service || self.access.offers(service, &self.description)
    }

    /// Returns the service for a case that needs these capabilities.
    pub(crate) fn service_for(&self, capabilities: &[Capability]) -> Service {
        let is_wanted = |service: &Service| match service {
            Service::SdpEcho if capabilities.contains(&Capability::Sdp) && !self.service().is_sdp() => true,
            service => {
                service.driver().facts().capability.is_some_and(|it| capabilities.contains(&it))
                    && self.offers(*service)
            }
        };
        Service::ALL.into_iter().find(is_wanted).unwrap_or(self.service())
    }

    /// Returns whether the target, as a port mapper's client, connects to the address in the
    /// answer.
    pub(crate) fn connects(&self) -> bool {
        self.access.builtin().is_some() || self.capabilities().contains(&Capability::PmConnect)
    }

    /// Returns whether a port mapper maps services over IPv6. For a client of a port mapper,
    /// returns whether the client sends its requests over IPv6.
    pub(crate) fn maps_v6(&self) -> bool {
        self.access.maps_v6(&self.description)
    }

    /// Returns `seconds` times the target's time scale.
    pub(crate) fn scaled(&self, seconds: f64) -> Duration {
        self.options.scaled(seconds)
    }
}
