//! An endpoint's MPA settings. They are chosen before start-up.

use super::{Rtr, RtrKinds};

/// The specifications that an endpoint implements (RFC 5044 Appendix C, Figure 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rnic {
    /// The endpoint implements only the RFCs. It rejects frames of revision 0. RFC 5044 calls such
    /// an endpoint a "Non-permissive IETF RNIC".
    #[default]
    Ietf,
    /// The endpoint implements the RFCs. If the peer's frame has revision 0, the endpoint uses the
    /// RDMA Consortium's protocols. Both directions then have markers and CRCs, and DDP and RDMAP
    /// have version 0.
    PermissiveIetf,
    /// The endpoint implements the RDMA Consortium's specifications. Its frames have revision 0,
    /// M=1 and C=1. DDP and RDMAP have version 0. RFC 5044 calls such an endpoint an "Upgraded
    /// RDMAC RNIC".
    Rdmac,
}

/// Use of the enhanced set-up of RFC 6581. An RDMAC endpoint never uses the enhanced set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EnhancedUse {
    /// An Initiator sends a Request of revision 1. A Responder closes the connection after an
    /// enhanced Request (P2P-10-4).
    Off,
    /// An Initiator sends a Request of revision 1. A Responder answers an enhanced Request with an
    /// enhanced Reply.
    #[default]
    Answer,
    /// An Initiator sends an enhanced Request: revision 2, S=1. A Responder answers an enhanced
    /// Request with an enhanced Reply.
    Request,
}

/// Which side of a connection may send first (RFC 6581 section 9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Model {
    /// The Initiator's ULP sends first (flag A=0).
    #[default]
    ClientServer,
    /// The ULP of each side may send first (flag A=1). To allow this, the Initiator starts with a
    /// ready-to-receive message.
    PeerToPeer,
}

/// IRD or ORD (inbound or outbound RDMA Read queue depth) of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Depth {
    /// Number of RDMA Read Requests, 0 to 0x3FFE. If the number is larger, 0x3FFE is used.
    pub local: u16,
    /// True: the Initiator's Request has `local`, and the Reply can change the result. False: the
    /// Request has 0x3FFF, the endpoint uses `local`, and the ULPs have to agree without MPA
    /// (P2P-9.1-12). A Responder ignores this setting: its Reply depends on the values in the
    /// Request.
    pub negotiated: bool,
}

impl Depth {
    /// Greatest number that a start-up frame can have.
    pub const MAX: u16 = 0x3FFE;

    /// A depth that MPA negotiates.
    #[must_use]
    pub const fn negotiated(local: u16) -> Self {
        Depth { local, negotiated: true }
    }

    /// A depth on which the ULPs agree without MPA.
    #[must_use]
    pub const fn fixed(local: u16) -> Self {
        Depth { local, negotiated: false }
    }

    pub(super) const fn value(self) -> u16 {
        if self.local > Self::MAX { Self::MAX } else { self.local }
    }
}

/// Values and limits for the negotiation of RFC 6581.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnhancedSettings {
    /// The model that an Initiator requests. A Responder uses the model of the Request. Default
    /// client-server.
    pub model: Model,
    /// Number of the peer's RDMA Read Requests that this endpoint can store at a time. Default 32,
    /// negotiated.
    pub ird: Depth,
    /// Number of RDMA Read Requests that this endpoint wants to have outstanding. Default 32,
    /// negotiated.
    pub ord: Depth,
    /// If the peer's ORD is higher than `ird`, this endpoint raises its IRD, but at most to this
    /// limit. If the peer's ORD is above the limit, a Responder sends the limit in its Reply. In
    /// the same case, an Initiator ends the connection with a Terminate (20 06: insufficient IRD).
    /// Default 128. If this value is below `ird`, `ird` is the limit.
    pub max_ird: u16,
    /// Least ORD that a Responder's ULP needs. If the IRD of the Request is lower, the Responder
    /// sends a rejecting Reply with `min_ord` as ORD (P2P-9.1-21). Default 0: the Responder rejects
    /// no Request for this reason.
    pub min_ord: u16,
    /// Kinds of ready-to-receive message that this endpoint can send and accept. Default all three.
    /// If the set is empty, a Responder accepts Writes (P2P-9.2-6).
    pub rtr: RtrKinds,
    /// The kind that an Initiator sends if the Reply allows several kinds. Default Write.
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
    /// Kind of ready-to-receive message on which the endpoints have agreed without MPA. It applies
    /// to start-up frames of revision 1. The Initiator sends this message first, and the Responder
    /// accepts it before the messages of the ULP. This is option A of an e-mail proposal of 2007.
    /// The proposal recommends a Read. Options B and C of the proposal never got bit positions in
    /// the frames, and RFC 6581 replaced these options. Default none.
    pub agreed_rtr: Option<Rtr>,
    /// For a Responder of kind [`Rnic::Ietf`]: the Responder answers a Request of revision 0 with a
    /// Reply of revision 1 before it closes the connection (RFC 5044 C.2.1, MPA-C.2.1-1). Default
    /// false: the Responder closes the connection at once (RFC 5044 section 7.1.1).
    pub answer_revision_0: bool,
    /// Flag C of this endpoint's frame: the endpoint wants CRCs. The default and recommended value
    /// is true (MPA-4.4-5). False has an effect only if the peer's frame also has C=0. Use false
    /// only for paths whose end-to-end protection is at least as good as a CRC32c (MPA-4.4-7).
    pub crc: bool,
    /// When to use the enhanced set-up of RFC 6581. Default: answer, but do not request.
    pub enhanced: EnhancedUse,
    /// Values for the enhanced set-up of RFC 6581.
    pub enhanced_settings: EnhancedSettings,
    /// Flag M of this endpoint's frame: the peer must send markers. Default false. The peer's flag
    /// M determines whether this endpoint sends markers (MPA-4.3-3).
    pub markers: bool,
    /// Specifications that the endpoint implements. Default [`Rnic::Ietf`].
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
    /// Flag M of this endpoint's Request, or of its Reply to a peer that is not RDMAC.
    pub(super) fn m(&self) -> bool {
        self.markers || self.rnic == Rnic::Rdmac
    }

    /// Flag C of this endpoint's Request, or of its Reply to a peer that is not RDMAC and has C=0.
    pub(super) fn c(&self) -> bool {
        self.crc || self.rnic == Rnic::Rdmac
    }

    /// Returns whether an Initiator sends an enhanced Request.
    #[must_use]
    pub fn requests_enhanced(&self) -> bool {
        self.enhanced == EnhancedUse::Request && self.rnic != Rnic::Rdmac
    }

    /// Revision of an Initiator's Request. Only an Initiator that requests the enhanced set-up uses
    /// revision 2 (P2P-10-1).
    pub(super) fn request_revision(&self) -> u8 {
        match (self.rnic, self.requests_enhanced()) {
            (Rnic::Rdmac, _) => 0,
            (_, true) => 2,
            (_, false) => 1,
        }
    }

    /// Returns whether a Responder answers an enhanced Request with an enhanced Reply.
    pub(super) fn answers_enhanced(&self) -> bool {
        self.enhanced != EnhancedUse::Off && self.rnic != Rnic::Rdmac
    }
}
