//! Profiles that combine the start-up of SDP with the start-up of MPA. The draft does not mention
//! MPA start-up frames. In the draft, the side that accepts the connection sends the first FPDU,
//! HelloAck. But RFC 5044 does not let an MPA Responder send an FPDU before it has received one.
//! Each profile resolves this conflict in a different way.

use weft_core::wire::mpa::Framing;

use crate::mpa::{EnhancedUse, Model, MpaSettings, RtrKinds};

/// A start-up profile. The Connecting Peer is the side that sends Hello. Request and Reply are the
/// MPA start-up frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// The Connecting Peer sends Hello in streaming mode. Then the Accepting Peer becomes MPA
    /// Initiator, and the Connecting Peer becomes MPA Responder. HelloAck is the first FPDU. This
    /// profile violates neither the draft nor RFC 5044.
    #[default]
    Swapped,
    /// The Connecting Peer sends Hello, and FPDUs follow without MPA start-up frames.
    /// [`BareSettings`] has the values that MPA start-up frames would negotiate. This profile
    /// follows the draft literally.
    Bare,
    /// The Connecting Peer sends Hello and Request. The Accepting Peer sends Reply and then
    /// HelloAck, although it has not received an FPDU. This deviates from RFC 5044.
    Natural,
    /// `Natural` with MPA revision 2: the Connecting Peer sends a ready-to-receive message of RFC
    /// 6581 (an empty Write or Read) before HelloAck. This deviates from the draft, in which the
    /// Connecting Peer sends nothing until HelloAck.
    Enhanced,
    /// Hello and HelloAck are the private data of Request and Reply. This deviates from the draft,
    /// in which they are separate messages.
    PrivateData,
}

/// Settings of the bare profile. Both sides must be configured with matching values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BareSettings {
    /// Version of DDP and RDMAP, 0 or 1. Default 1.
    pub version: u8,
    /// Markers and CRC of the FPDUs that this side sends. Default: CRC, but no markers.
    pub framing_sent: Framing,
    /// Markers and CRC of the FPDUs that this side receives. Default: CRC, but no markers.
    pub framing_received: Framing,
}

impl Default for BareSettings {
    fn default() -> Self {
        let framing = Framing { markers: false, crc: true };
        BareSettings { version: 1, framing_sent: framing, framing_received: framing }
    }
}

impl Profile {
    /// Returns the MPA settings that a Connecting Peer needs for this profile.
    pub(super) fn mpa(self, mut mpa: MpaSettings) -> MpaSettings {
        match self {
            Profile::Enhanced => {
                mpa.enhanced = EnhancedUse::Request;
                mpa.enhanced_settings.model = Model::PeerToPeer;
                mpa.enhanced_settings.rtr = NO_SEND;
            }
            Profile::Natural | Profile::PrivateData if mpa.enhanced == EnhancedUse::Request => {
                mpa.enhanced = EnhancedUse::Answer;
            }
            _ => {}
        }
        mpa
    }

    /// Returns the MPA settings that an Accepting Peer needs. Its own Request is never enhanced.
    pub(super) fn accepting_mpa(mut mpa: MpaSettings) -> MpaSettings {
        if mpa.enhanced == EnhancedUse::Request {
            mpa.enhanced = EnhancedUse::Answer;
        }
        mpa.enhanced_settings.rtr = NO_SEND;
        mpa
    }
}

/// All kinds of ready-to-receive message except Send. The peer would treat a Send as an SDP
/// message.
const NO_SEND: RtrKinds = RtrKinds { send: false, ..RtrKinds::ALL };
