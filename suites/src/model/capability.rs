//! The capabilities of a target: what it supports, and which service runs on it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A capability that a target may have and a case may need. weft rejects all other names, so that a
/// misspelled capability is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// The target has an agent, which calls the verbs of the target's NIC. weft derives this
    /// capability from `agent` of the target file. The file cannot declare it.
    Agent,
    /// Sets M=1 in its own start-up frames, so that the tester's FPDUs must have markers.
    AsksForMarkers,
    /// Serves Atomic Operations, and accepts Immediate Data (RFC 7306).
    Atomics,
    /// Sends and checks CRCs if the peer requests them.
    Crc,
    /// Answers each Send with a Send of the same bytes. weft derives this capability from the
    /// target's service. The target file cannot declare it.
    Echo,
    /// Sends markers if the peer requests them.
    Markers,
    /// Can enter Full Operation, because echo or rping runs on the target. weft derives this
    /// capability from the target's service. The target file cannot declare it.
    Operation,
    /// Answers an MPA Request of revision 1.
    #[serde(rename = "revision-1")]
    Revision1,
    /// Answers an MPA Request of revision 2 (RFC 6581).
    #[serde(rename = "revision-2")]
    Revision2,
    /// As a port mapper's client, connects to the address in the answer: the SDP Address or the
    /// Conventional Address.
    PmConnect,
    /// Is an SDP port mapper, or a client of a port mapper. weft derives this capability from the
    /// target's service. The target file cannot declare it.
    PortMapper,
    /// Like `port-mapper`, but over IPv6. weft derives this capability from the target's
    /// `[portmap]`, or from the address that a client uses. The target file cannot declare it.
    PortMapperV6,
    /// Runs `rping -s`. weft derives this capability from the target's service. The target file
    /// cannot declare it.
    Rping,
    /// Accepts SDP connections. weft derives all SDP capabilities from the target's service. The
    /// target file cannot declare them.
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
    /// The tester can choose the TCP segments that it sends. weft derives this capability from the
    /// way to reach the target. The target file cannot declare it.
    Segments,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
