//! What a target can do beyond what every MPA implementation must.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A capability that a target declares and a case may need. A closed list, so that a typo does not
/// load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// An agent drives the target's own verbs. Follows from the target's `agent`; nobody declares
    /// it.
    Agent,
    /// Has M=1 in its own start-up frames, so that the tester's FPDUs are to have markers.
    AsksForMarkers,
    /// Serves Atomic Operations, and takes Immediate Data (RFC 7306).
    Atomics,
    /// Sends and checks CRCs when asked to.
    Crc,
    /// Each Send comes back as a Send with the same octets. Follows from the target's service;
    /// nobody declares it.
    Echo,
    /// Sends markers when asked to.
    Markers,
    /// Full Operation can be entered: echo or rping runs on it. Follows from the target's service;
    /// nobody declares it.
    Operation,
    /// Answers an MPA Request of revision 1.
    #[serde(rename = "revision-1")]
    Revision1,
    /// Answers an MPA Request of revision 2 (RFC 6581).
    #[serde(rename = "revision-2")]
    Revision2,
    /// What asks a port mapper connects then where it was sent: to the SDP Address, or to the
    /// Conventional Address.
    PmConnect,
    /// The target is an SDP port mapper, or asks one. Follows from the target's service; nobody
    /// declares it.
    PortMapper,
    /// It does so over IPv6 as well. Follows from the target's `[portmap]`, or from where it asks;
    /// nobody declares it.
    PortMapperV6,
    /// `rping -s` runs on it. Follows from the target's service; nobody declares it.
    Rping,
    /// It accepts SDP connections. Follows from the target's service, as the other capabilities of
    /// SDP; nobody declares them.
    Sdp,
    /// It opens SDP connections.
    SdpConnect,
    /// An SDP socket that does what it is told by text.
    SdpDrive,
    /// An SDP socket that sends back what it gets.
    SdpEcho,
    /// An SDP socket that reads, and sends nothing.
    SdpSink,
    /// An SDP socket that sends without being asked.
    SdpSource,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Capability::Agent => "agent",
            Capability::AsksForMarkers => "asks-for-markers",
            Capability::Atomics => "atomics",
            Capability::Crc => "crc",
            Capability::Echo => "echo",
            Capability::Markers => "markers",
            Capability::Operation => "operation",
            Capability::Revision1 => "revision-1",
            Capability::Revision2 => "revision-2",
            Capability::PmConnect => "pm-connect",
            Capability::PortMapper => "port-mapper",
            Capability::PortMapperV6 => "port-mapper-v6",
            Capability::Rping => "rping",
            Capability::Sdp => "sdp",
            Capability::SdpConnect => "sdp-connect",
            Capability::SdpDrive => "sdp-drive",
            Capability::SdpEcho => "sdp-echo",
            Capability::SdpSink => "sdp-sink",
            Capability::SdpSource => "sdp-source",
        })
    }
}
