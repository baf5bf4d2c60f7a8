//! The ways in which SDP's start-up and MPA's can be put together. The draft never mentions MPA's
//! frames, and RFC 5044 does not let a Responder speak before the first FPDU arrived (C3).

use weft_core::wire::mpa::Framing;

use crate::mpa::{EnhancedUse, Model, MpaSettings, RtrKinds};

/// A start-up profile. The Connecting Peer is the one that sends Hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Hello in streaming mode; the Accepting Peer becomes MPA Initiator, the Connecting Peer its
    /// Responder; HelloAck is the first FPDU. Breaks no rule of either text.
    #[default]
    Swapped,
    /// Hello, then FPDUs; no MPA frames: [`Bare`] describes them. The literal draft.
    Bare,
    /// Hello and Request from the Connecting Peer; Reply, then HelloAck without an FPDU before it.
    /// A deviation from RFC 5044.
    Natural,
    /// `Natural` with MPA revision 2 and a ready-to-receive message of RFC 6581 before HelloAck, a
    /// Write or Read of no octets. A deviation from the draft, where the Connecting Peer is mute
    /// until HelloAck.
    Enhanced,
    /// Hello and HelloAck are the private data of Request and Reply. A deviation from the draft,
    /// where they are messages.
    PrivateData,
}

/// Settings that both sides of the bare profile must know beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bare {
    /// Version of DDP and RDMAP, 0 or 1. Default 1.
    pub version: u8,
    /// How FPDUs look that go out. Default: no markers, CRC.
    pub framing_sent: Framing,
    /// How FPDUs look that come in. Default: no markers, CRC.
    pub framing_received: Framing,
}

impl Default for Bare {
    fn default() -> Self {
        let framing = Framing { markers: false, crc: true };
        Bare { version: 1, framing_sent: framing, framing_received: framing }
    }
}

impl Profile {
    /// MPA as a Connecting Peer needs it.
    pub(super) fn mpa(self, mut mpa: MpaSettings) -> MpaSettings {
        match self {
            Profile::Enhanced => {
                mpa.enhanced = EnhancedUse::Ask;
                mpa.enhanced_settings.model = Model::PeerToPeer;
                mpa.enhanced_settings.rtr = NO_SEND;
            }
            Profile::Natural | Profile::PrivateData if mpa.enhanced == EnhancedUse::Ask => {
                mpa.enhanced = EnhancedUse::Answer;
            }
            _ => {}
        }
        mpa
    }

    /// MPA as an Accepting Peer needs it, whose own Request is never enhanced.
    pub(super) fn accepting_mpa(mut mpa: MpaSettings) -> MpaSettings {
        if mpa.enhanced == EnhancedUse::Ask {
            mpa.enhanced = EnhancedUse::Answer;
        }
        mpa.enhanced_settings.rtr = NO_SEND;
        mpa
    }
}

/// A Send would be taken for an SDP message.
const NO_SEND: RtrKinds = RtrKinds { send: false, ..RtrKinds::ALL };
