//! An endpoint's MPA settings, configured before start-up.

use super::{Rtr, RtrKinds};

/// The family of specifications that the endpoint speaks (RFC 5044 Appendix C, Figure 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rnic {
    /// The RFCs alone: a peer of revision 0 is refused. "Non-permissive IETF RNIC".
    #[default]
    Ietf,
    /// The RFCs, and with a peer of revision 0 what that one speaks: markers and CRCs both ways,
    /// DDP and RDMAP version 0.
    PermissiveIetf,
    /// The RDMA Consortium's specifications: revision 0, M=1, C=1 in its frames, versions 0.
    /// "Upgraded RDMAC RNIC".
    Rdmac,
}

/// When the enhanced set-up of RFC 6581 is used; an RDMAC endpoint has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EnhancedUse {
    /// Never: the Request has revision 1, and an enhanced Request closes the connection (P2P-10-4).
    Off,
    /// The Request has revision 1; an enhanced Request is answered by an enhanced Reply.
    #[default]
    Answer,
    /// The Request is enhanced: revision 2, S=1. An enhanced Request is answered, too.
    Ask,
}

/// How the two sides of a connection begin to talk (RFC 6581 section 9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Model {
    /// The Initiator's ULP sends first. A=0.
    #[default]
    ClientServer,
    /// Either ULP may send first: the Initiator begins with a ready-to-receive message. A=1.
    PeerToPeer,
}

/// IRD or ORD of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Depth {
    /// Number of RDMA Read Requests, 0 to 0x3FFE; a larger number is reduced to that.
    pub local: u16,
    /// The Request has it, and the peer's answer may change it. Otherwise the Request has 0x3FFF:
    /// `local` stays, and the ULPs agree by themselves (P2P-9.1-12). A Responder answers the
    /// Request, whatever this setting is.
    pub negotiated: bool,
}

impl Depth {
    /// Greatest number that can be sent.
    pub const MAX: u16 = 0x3FFE;

    /// A depth that is negotiated.
    #[must_use]
    pub const fn negotiated(local: u16) -> Self {
        Depth { local, negotiated: true }
    }

    /// A depth that the ULPs see to.
    #[must_use]
    pub const fn fixed(local: u16) -> Self {
        Depth { local, negotiated: false }
    }

    pub(super) const fn value(self) -> u16 {
        if self.local > Self::MAX { Self::MAX } else { self.local }
    }
}

/// The wishes and limits that RFC 6581 negotiates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnhancedSettings {
    /// Initiator: the model that it wants. A Responder follows its peer. Default client-server.
    pub model: Model,
    /// RDMA Read Requests of the peer that this endpoint holds at once. Default 32, negotiated.
    pub ird: Depth,
    /// RDMA Read Requests that this endpoint wants to have outstanding. Default 32, negotiated.
    pub ord: Depth,
    /// How far IRD is raised where the peer wants more. A Responder then sends this number; an
    /// Initiator ends the connection with Terminate 20 06. Default 128; at least `ird`.
    pub max_ird: u16,
    /// Responder: the least ORD that its ULP can work with; a Request with a lower IRD is rejected
    /// by a Reply that names it (P2P-9.1-21). Default 0: none is rejected.
    pub min_ord: u16,
    /// Ready-to-receive messages that this endpoint can send, and take. Default all three. A
    /// Responder that has none here takes Writes (P2P-9.2-6).
    pub rtr: RtrKinds,
    /// The one that the Initiator sends when the Reply leaves the choice. Default Write.
    pub preferred_rtr: Rtr,
}

impl Default for EnhancedSettings {
    fn default() -> Self {
        EnhancedSettings {
            model: Model::ClientServer,
            ird: Depth::negotiated(32),
            ord: Depth::negotiated(32),
            max_ird: 128,
            min_ord: 0,
            rtr: RtrKinds::ALL,
            preferred_rtr: Rtr::Write,
        }
    }
}

/// Settings of the MPA layer of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MpaSettings {
    /// A ready-to-receive message in revision 1, agreed out of band (option A of the e-mail
    /// proposal of 2007, which recommends a Read): the Initiator begins with it, the Responder
    /// takes it in front of the ULP's messages. The proposal's options B and C, bits in the frames,
    /// were never given positions; RFC 6581 took their place. Default none.
    pub agreed_rtr: Option<Rtr>,
    /// Responder that is not permissive: answer a Request of revision 0 with a Reply of revision 1
    /// before closing, as RFC 5044 C.2.1 describes (MPA-C.2.1-1). Default false: close at once, as
    /// 7.1.1 requires.
    pub answer_revision_0: bool,
    /// C in this endpoint's frame: CRCs are wanted. Default and recommended: true (MPA-4.4-5).
    /// False takes effect only where the peer has C=0, too, and is for paths that protect the data
    /// as well as a CRC32c from end to end does (MPA-4.4-7).
    pub crc: bool,
    /// RFC 6581: when. Default: answered, not requested.
    pub enhanced: EnhancedUse,
    /// RFC 6581: what.
    pub enhanced_settings: EnhancedSettings,
    /// M in this endpoint's frame: the peer shall put markers into what it sends. Default false;
    /// markers that the peer asks for are sent whatever this setting is (MPA-4.3-3).
    pub markers: bool,
    /// Default [`Rnic::Ietf`].
    pub rnic: Rnic,
}

impl Default for MpaSettings {
    fn default() -> Self {
        MpaSettings {
            agreed_rtr: None,
            answer_revision_0: false,
            crc: true,
            enhanced: EnhancedUse::default(),
            enhanced_settings: EnhancedSettings::default(),
            markers: false,
            rnic: Rnic::default(),
        }
    }
}

impl MpaSettings {
    /// M of this endpoint's Request, or of a Reply to a peer that is not RDMAC.
    pub(super) fn m(&self) -> bool {
        self.markers || self.rnic == Rnic::Rdmac
    }

    /// C likewise.
    pub(super) fn c(&self) -> bool {
        self.crc || self.rnic == Rnic::Rdmac
    }

    /// The Request is enhanced.
    #[must_use]
    pub fn asks_enhanced(&self) -> bool {
        self.enhanced == EnhancedUse::Ask && self.rnic != Rnic::Rdmac
    }

    /// Rev of the Request: no enhanced format where nothing enhanced is wanted (P2P-10-1).
    pub(super) fn request_revision(&self) -> u8 {
        match (self.rnic, self.asks_enhanced()) {
            (Rnic::Rdmac, _) => 0,
            (_, true) => 2,
            (_, false) => 1,
        }
    }

    /// An enhanced Request is answered.
    pub(super) fn answers_enhanced(&self) -> bool {
        self.enhanced != EnhancedUse::Off && self.rnic != Rnic::Rdmac
    }
}
