//! The start-up profiles of SDP.

use serde::{Deserialize, Serialize};
use weft_core::{RequirementId, requirement};

/// The order of SDP's start-up messages and MPA's start-up frames. The Connecting Peer sends Hello
/// first in each profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SdpStart {
    /// The Accepting Peer sends the MPA Request, and the Connecting Peer sends the Reply. HelloAck
    /// is the first FPDU.
    #[default]
    Swapped,
    /// There are no MPA start-up frames. FPDUs with CRC and without markers follow Hello.
    Bare,
    /// The Connecting Peer sends the MPA Request directly after Hello. The Accepting Peer sends the
    /// Reply, then HelloAck.
    Natural,
    /// Like `natural`, but with MPA revision 2. The Connecting Peer sends a zero-length RDMA Write
    /// before HelloAck.
    Enhanced,
    /// Hello is the private data of the MPA Request. HelloAck is the private data of the Reply.
    PrivateData,
}

impl SdpStart {
    /// Returns the rules that the Accepting Peer violates in this profile. In the profile
    /// `natural`, the Accepting Peer sends an FPDU (HelloAck) before the Initiator's first FPDU.
    /// MPA forbids this.
    pub(crate) const fn breaks(self) -> &'static [RequirementId] {
        match self {
            SdpStart::Natural => &[requirement!("MPA-7.1.2-17"), requirement!("MPA-7.1.3-2")],
            SdpStart::Swapped | SdpStart::Bare | SdpStart::Enhanced | SdpStart::PrivateData => &[],
        }
    }
}
