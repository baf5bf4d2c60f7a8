//! The services of targets that have sessions.

use crate::model::Role;
use crate::targets::Service;

/// The service of the target that a session uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionService {
    Echo,
    Rping,
    SdpEcho,
    SdpSink,
    SdpSource,
    SdpDrive,
    SdpConnect,
    Agent,
    PortMapper,
}

impl SessionService {
    /// Each service that has sessions.
    pub(crate) const ALL: [(Service, SessionService); 9] = [
        (Service::Echo, SessionService::Echo),
        (Service::Rping, SessionService::Rping),
        (Service::SdpEcho, SessionService::SdpEcho),
        (Service::SdpSink, SessionService::SdpSink),
        (Service::SdpSource, SessionService::SdpSource),
        (Service::Agent, SessionService::Agent),
        (Service::PortMapper, SessionService::PortMapper),
        (Service::SdpDrive, SessionService::SdpDrive),
        (Service::SdpConnect, SessionService::SdpConnect),
    ];

    /// Name of the capability.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SessionService::Echo => "echo",
            SessionService::Rping => "rping",
            SessionService::SdpEcho => "sdp-echo",
            SessionService::SdpSink => "sdp-sink",
            SessionService::SdpSource => "sdp-source",
            SessionService::SdpDrive => "sdp-drive",
            SessionService::SdpConnect => "sdp-connect",
            SessionService::Agent => "agent",
            SessionService::PortMapper => "port-mapper",
        }
    }

    /// The roles in which a target can have sessions with this service.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            SessionService::Echo | SessionService::Rping | SessionService::Agent => &[Role::Responder, Role::Initiator],
            // The builtin responder also has a socket that connects.
            SessionService::SdpConnect => &[Role::Responder, Role::Initiator],
            _ => &[Role::Responder],
        }
    }

    /// The field `roles` of a case, in Lua. Empty if a case has this role without the field.
    pub(super) fn roles_field(self) -> &'static str {
        match self.roles() {
            [Role::Responder] => "",
            _ => "roles = { \"responder\", \"initiator\" },\n  ",
        }
    }

    /// Returns whether the service is an SDP socket.
    pub(crate) fn is_sdp(self) -> bool {
        let is_simple = matches!(self, SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource);
        is_simple || self.is_driven()
    }

    /// Returns whether the service is a driven SDP socket, which executes commands.
    pub(crate) fn is_driven(self) -> bool {
        matches!(self, SessionService::SdpDrive | SessionService::SdpConnect)
    }

    /// The parameters of a case's function, and the arguments of the constructor in the Lua module.
    pub(super) fn parameters(self) -> [&'static str; 2] {
        match self {
            SessionService::Agent => ["t, p, target", "t, target"],
            _ => ["t", "t"],
        }
    }

    /// Name of the constructor in the Lua module.
    pub(super) fn constructor(self) -> String {
        if self == SessionService::PortMapper { "portmap".to_owned() } else { self.name().replace('-', "_") }
    }

    /// Name, in the Lua module, of the list of requirements that each session tests.
    pub(super) fn rows(self) -> &'static str {
        match self {
            SessionService::Echo => "ECHO",
            SessionService::Rping => "RPING",
            SessionService::SdpEcho
            | SessionService::SdpSink
            | SessionService::SdpSource
            | SessionService::SdpDrive
            | SessionService::SdpConnect => "SDP",
            SessionService::Agent => "AGENT",
            SessionService::PortMapper => "PORTMAP",
        }
    }

    /// Folder of the saved cases in a folder of suites. It is also the beginning of their ids.
    pub(crate) fn topic(self) -> &'static str {
        match self {
            SessionService::Echo | SessionService::Rping | SessionService::Agent => "rdmap/explored",
            SessionService::SdpEcho
            | SessionService::SdpSink
            | SessionService::SdpSource
            | SessionService::SdpDrive
            | SessionService::SdpConnect => "sdp/explored",
            SessionService::PortMapper => "sdp-pm/explored",
        }
    }
}
