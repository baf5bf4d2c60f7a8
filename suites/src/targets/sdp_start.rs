//! The start-up profiles of SDP.

use serde::{Deserialize, Serialize};
use weft_core::{RequirementId, requirement};

/// How SDP's start-up and MPA's are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SdpStart {
    /// Hello; the Accepting Peer sends the MPA Request, the Connecting Peer the Reply; HelloAck is
    /// the first FPDU.
    #[default]
    Swapped,
    /// Hello, then FPDUs with CRC and without markers.
    Bare,
    /// Hello and Request; Reply, then HelloAck.
    Natural,
    /// The same with revision 2 and a zero-length Write before HelloAck.
    Enhanced,
    /// Hello and HelloAck are private data.
    PrivateData,
}

impl SdpStart {
    /// The rules that the Accepting Peer must violate in this profile: its HelloAck is an FPDU
    /// before the first one of the Initiator.
    pub(crate) const fn breaks(self) -> &'static [RequirementId] {
        match self {
            SdpStart::Natural => &[requirement!("MPA-7.1.2-17"), requirement!("MPA-7.1.3-2")],
            SdpStart::Swapped | SdpStart::Bare | SdpStart::Enhanced | SdpStart::PrivateData => &[],
        }
    }
}
