//! The services above MPA on a target, and the capabilities that follow from them.

use crate::model::Capability;
use crate::stage::service::{self, Protocol, Sdp, ServiceDriver};

/// The service above MPA on the target. It determines the good exchange, a correct exchange that
/// shows whether the target works. If the target is the Initiator, each exchange begins with a
/// message of the target, because a Responder must not send first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// The verbs of the target's agent. A target file cannot name this service. weft selects it for
    /// cases that need the agent.
    #[serde(skip)]
    Agent,
    /// Answers each Send with a Send of the same bytes (the builtin responder, or
    /// `siwprobe server -e`). An Initiator sends first.
    Echo,
    /// `rping -s`, or `rping -c` if the target is the Initiator. The good exchange is one round of
    /// rping. A Send that is not a message of rping ends the connection.
    Rping,
    /// No known service above MPA: the good exchange is the start-up alone.
    None,
    /// An SDP port mapper over UDP. The good exchange is a PMReq and its answer. If the target is
    /// the Initiator, it is a client of a port mapper. The client sends the PMReq, and connects to
    /// the address in the answer.
    PortMapper,
    /// A driven SDP socket that connects.
    SdpConnect,
    /// A driven SDP socket, which executes text commands (docs/sdp-driver.md).
    SdpDrive,
    /// An SDP socket that returns the bytes that it receives, and closes when its peer closes.
    SdpEcho,
    /// An SDP socket that reads, and closes when its peer closes.
    SdpSink,
    /// An SDP socket that sends a few thousand bytes when it is connected.
    SdpSource,
}

impl Service {
    /// All services. If a case can run against several services, it runs against the first of them
    /// in this list.
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

    /// Returns the driver with which the tester uses the service.
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

    /// Returns the service from which a capability follows, if there is one.
    pub(crate) fn of_capability(capability: Capability) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.driver().facts().capability == Some(capability))
    }

    /// The service's name in target files and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.driver().facts().name
    }

    /// Returns whether the service speaks SDP.
    pub(crate) fn is_sdp(self) -> bool {
        self.driver().facts().protocol == Protocol::Sdp
    }

    /// Returns the service for a good exchange that ends after start-up. If this service has no
    /// such exchange, returns the service itself.
    pub(crate) fn of_startup(self) -> Self {
        if self.driver().facts().has_plain_exchange { Service::None } else { self }
    }
}

impl Capability {
    /// Returns whether a target file can declare this capability. weft derives the other
    /// capabilities from other fields of the file.
    pub(crate) fn is_declared(self) -> bool {
        use Capability::{AsksForMarkers, Atomics, Crc, Markers, PmConnect, Revision1, Revision2};
        matches!(self, AsksForMarkers | Atomics | Crc | Markers | PmConnect | Revision1 | Revision2)
    }

    /// Returns whether the capability belongs to SDP or to a port mapper, where a connection does
    /// not begin with MPA.
    pub(crate) fn is_of_sdp(self) -> bool {
        use Capability::{PmConnect, PortMapper, PortMapperV6, Sdp, SdpConnect, SdpDrive, SdpEcho, SdpSink, SdpSource};
        let of_sdp = [PmConnect, PortMapper, PortMapperV6, Sdp, SdpConnect, SdpDrive, SdpEcho, SdpSink, SdpSource];
        of_sdp.contains(&self)
    }
}
