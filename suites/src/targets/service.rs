//! The services above MPA on a target, and the capabilities that follow from them.

use crate::model::Capability;
use crate::stage::service::{self, Protocol, Sdp, ServiceDriver};

/// The service above MPA, which determines the good exchange. If the target is the Initiator, each
/// exchange begins with a message of its own, since a Responder may not send first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// The verbs of its agent. A target file cannot name this service: cases that need the agent use
    /// it.
    #[serde(skip)]
    Agent,
    /// Answers each Send with a Send of the same bytes (the builtin responder; `siwprobe server -e`).
    /// An Initiator begins with a Send of its own.
    Echo,
    /// `rping -s`, or `rping -c` if the target is the Initiator. A round of rping is the good
    /// exchange; a Send of another kind ends the connection.
    Rping,
    /// No known service above MPA: the good exchange is the start-up alone.
    None,
    /// An SDP port mapper over UDP. The good exchange is a PMReq with its answer. An Initiator sends
    /// the PMReq, and connects to the address in the answer.
    PortMapper,
    /// An SDP socket that connects. Only builtin targets have it.
    SdpConnect,
    /// An SDP socket that is controlled by text commands. Only builtin targets have it.
    SdpDrive,
    /// An SDP socket that returns the bytes that it receives, and closes when its peer does.
    SdpEcho,
    /// An SDP socket that reads, and closes when its peer does.
    SdpSink,
    /// An SDP socket that sends a few thousand bytes when it is connected.
    SdpSource,
}

impl Service {
    /// All of them. If a case can run against several, it runs against the first of them.
    pub(crate) const ALL: [Service; 10] = [
        Service::Agent,
        Service::Rping,
        Service::Echo,
        Service::SdpConnect,
        Service::SdpDrive,
        Service::SdpSink,
        Service::SdpSource,
        Service::SdpEcho,
        Service::PortMapper,
        Service::None,
    ];

    /// The tester's side of the service.
    pub(crate) fn driver(self) -> &'static dyn ServiceDriver {
        match self {
            Service::Agent => &service::Agent,
            Service::Echo => &service::Echo,
            Service::Rping => &service::Rping,
            Service::None => &service::NoService,
            Service::PortMapper => &service::PortMapper,
            Service::SdpConnect => &Sdp::CONNECT,
            Service::SdpDrive => &Sdp::DRIVE,
            Service::SdpEcho => &Sdp::ECHO,
            Service::SdpSink => &Sdp::SINK,
            Service::SdpSource => &Sdp::SOURCE,
        }
    }

    /// The service from which a capability follows.
    pub(crate) fn of_capability(capability: Capability) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.driver().capability() == Some(capability))
    }

    /// Its name in target files and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.driver().name()
    }

    /// Does it speak SDP?
    pub(crate) fn is_sdp(self) -> bool {
        self.driver().protocol() == Protocol::Sdp
    }

    /// The service whose good exchange ends after start-up, if there can be one.
    pub(crate) fn of_startup(self) -> Self {
        if self.driver().has_plain_exchange() { Service::None } else { self }
    }
}

impl Capability {
    /// Is it one that a target's file declares? The others follow from its service.
    pub(crate) fn is_declared(self) -> bool {
        use Capability::{AsksForMarkers, Atomics, Crc, Markers, PmConnect, Revision1, Revision2};
        matches!(self, AsksForMarkers | Atomics | Crc | Markers | PmConnect | Revision1 | Revision2)
    }

    /// Is it about a service that speaks no MPA at once?
    pub(crate) fn is_of_sdp(self) -> bool {
        use Capability::{PmConnect, PortMapper, PortMapperV6, Sdp, SdpConnect, SdpDrive, SdpEcho, SdpSink, SdpSource};
        let of_sdp = [PmConnect, PortMapper, PortMapperV6, Sdp, SdpConnect, SdpDrive, SdpEcho, SdpSink, SdpSource];
        of_sdp.contains(&self)
    }
}
