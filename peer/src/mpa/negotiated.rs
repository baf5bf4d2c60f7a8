//! The result of start-up, which applies to the rest of the connection.

use weft_core::wire::mpa::Framing;

use super::{Agreed, RtrKinds};

/// Role of an endpoint in MPA start-up. The role does not depend on which endpoint opened the TCP
/// connection (MPA-7.1-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The endpoint that sends the Request.
    Initiator,
    /// The endpoint that sends the Reply.
    Responder,
}

impl Role {
    pub(super) fn peer_frame(self) -> &'static str {
        match self {
            Role::Initiator => "Reply",
            Role::Responder => "Request",
        }
    }
}

/// The result of a successful start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// This endpoint's role.
    pub role: Role,
    /// Revision of the peer's frame, for the ULP (MPA-7.1.1-23).
    pub peer_revision: u8,
    /// Version of DDP and of RDMAP in both directions: 1, or 0 with the RDMA Consortium's protocols
    /// (MPA-3-14).
    pub version: u8,
    /// True if both endpoints send and check CRCs, because at least one frame had C=1
    /// (MPA-7.1.1-12).
    pub crc: bool,
    /// True if this endpoint sends markers, because the peer's frame had M=1 (MPA-7.1.1-9).
    pub markers_sent: bool,
    /// True if the peer sends markers, because this endpoint's frame had M=1.
    pub markers_received: bool,
    /// Result of the enhanced set-up of RFC 6581. `None` if start-up was not enhanced.
    pub enhanced: Option<Agreed>,
    /// Kinds of ready-to-receive message. For an Initiator, the set contains the kind that this
    /// endpoint sends as its first message. For a Responder, the set contains the kinds that the
    /// first message of the peer may have. The set is empty if the endpoints agreed on no
    /// ready-to-receive message.
    pub rtr: RtrKinds,
}

impl Negotiated {
    /// Format of the FPDUs that this endpoint sends.
    #[must_use]
    pub const fn framing_sent(&self) -> Framing {
        Framing { markers: self.markers_sent, crc: self.crc }
    }

    /// Format of the FPDUs that the peer sends.
    #[must_use]
    pub const fn framing_received(&self) -> Framing {
        Framing { markers: self.markers_received, crc: self.crc }
    }
}
