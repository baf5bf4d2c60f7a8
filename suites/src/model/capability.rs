//! Capabilities of a target beyond those that every MPA implementation must have.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A capability that a target declares and a case may need. A closed list, so that a typo does not
/// load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// An agent drives the target's own verbs. Follows from the target's `agent`, and is not
    /// declared.
    Agent,
    /// Has M=1 in its own start-up frames, so that the tester's FPDUs must have markers.
    AsksForMarkers,
    /// Serves Atomic Operations, and accepts Immediate Data (RFC 7306).
    Atomics,
    /// Sends and checks CRCs if the peer requests it.
    Crc,
    /// Answers each Send with a Send of the same bytes. Follows from the target's service, and is
    /// not declared.
    Echo,
    /// Sends markers if the peer requests it.
    Markers,
    /// Can enter Full Operation: echo or rping runs on it. Follows from the target's service, and is
    /// not declared.
    Operation,
    /// Answers an MPA Request of revision 1.
    #[serde(rename = "revision-1")]
    Revision1,
    /// Answers an MPA Request of revision 2 (RFC 6581).
    #[serde(rename = "revision-2")]
    Revision2,
    /// A port mapper's client then connects to the address that it got: the SDP Address or the
    /// Conventional Address.
    PmConnect,
    /// Is an SDP port mapper, or a client of one. Follows from the target's service, and is not
    /// declared.
    PortMapper,
    /// The same over IPv6. Follows from the target's `[portmap]`, or from the address that a client
    /// uses, and is not declared.
    PortMapperV6,
    /// Runs `rping -s`. Follows from the target's service, and is not declared.
    Rping,
    /// Accepts SDP connections. Follows from the target's service like the other SDP capabilities,
    /// which are not declared either.
    Sdp,
    /// Opens SDP connections.
    SdpConnect,
    /// An SDP socket that is controlled by text commands.
    SdpDrive,
    /// An SDP socket that returns the bytes that it receives.
    SdpEcho,
    /// An SDP socket that reads, and sends nothing.
    SdpSink,
    /// An SDP socket that sends without a command.
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
