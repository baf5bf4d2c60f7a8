//! What runs above MPA on a target, and which capabilities follow from that.

use crate::model::Capability;

/// What answers above MPA, and so what a good exchange is. Of a target that is the Initiator, each begins with a message of its own, for
/// the Responder may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// What its agent is asked to do. A target's file does not say so: cases that need the agent have it.
    #[serde(skip)]
    Agent,
    /// Each Send comes back as a Send with the same octets (the builtin responder; `siwprobe server -e`). An Initiator opens with a Send
    /// of its own.
    Echo,
    /// `rping -s`, or `rping -c` where the target is the Initiator: its ritual is the good exchange; a Send that is not the ritual's ends
    /// the connection.
    Rping,
    /// Nothing is known above MPA: the start-up alone is the good exchange.
    None,
    /// An SDP port mapper, over UDP; a PMReq and its answer are the good exchange. An Initiator asks one, and connects where it is sent.
    PortMapper,
    /// An SDP socket that connects. Builtin targets alone have it.
    SdpConnect,
    /// An SDP socket that does what it is told by text. Builtin targets alone have it.
    SdpDrive,
    /// An SDP socket that sends back what it gets, and closes when its peer does.
    SdpEcho,
    /// An SDP socket that reads, and closes when its peer does.
    SdpSink,
    /// An SDP socket that sends a few thousand octets when the connection is there.
    SdpSource,
}

impl Service {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Service::Agent => "agent",
            Service::Echo => "echo",
            Service::Rping => "rping",
            Service::None => "none",
            Service::PortMapper => "port-mapper",
            Service::SdpConnect => "sdp-connect",
            Service::SdpDrive => "sdp-drive",
            Service::SdpEcho => "sdp-echo",
            Service::SdpSink => "sdp-sink",
            Service::SdpSource => "sdp-source",
        }
    }

    /// Does it speak SDP?
    #[must_use]
    pub fn is_sdp(self) -> bool {
        self.accepts_sdp() || self == Service::SdpConnect
    }

    /// Is there an exchange of messages that a control can do in place of a step that deviates?
    pub(crate) fn has_plain_exchange(self) -> bool {
        use Service::{Agent, Echo, PortMapper, Rping, SdpConnect, SdpDrive, SdpEcho};
        matches!(self, Agent | Echo | PortMapper | Rping | SdpConnect | SdpDrive | SdpEcho)
    }

    /// What a good exchange is for that ends behind start-up, where that can be.
    pub(crate) fn of_startup(self) -> Self {
        if self.has_plain_exchange() { Service::None } else { self }
    }

    /// Does it accept SDP connections?
    #[must_use]
    pub fn accepts_sdp(self) -> bool {
        matches!(self, Service::SdpDrive | Service::SdpEcho | Service::SdpSink | Service::SdpSource)
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
