//! The results of start-up for the rest of the connection.

use weft_core::wire::mpa::Framing;

use super::{Agreed, RtrKinds};

/// The part that an endpoint plays in MPA start-up; its part in TCP's does not matter (MPA-7.1-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sends the Request.
    Initiator,
    /// Sends the Reply.
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

/// The result of a start-up that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// This endpoint's role.
    pub role: Role,
    /// Rev of the peer's frame, for the ULP to see (MPA-7.1.1-23).
    pub peer_revision: u8,
    /// The version in the headers of DDP and RDMAP, both ways: 1, or 0 with the RDMA Consortium's
    /// protocols (MPA-3-14).
    pub version: u8,
    /// CRCs are made and checked in both directions: either frame had C=1 (MPA-7.1.1-12).
    pub crc: bool,
    /// This endpoint puts markers into what it sends: the peer's frame had M=1 (MPA-7.1.1-9).
    pub markers_sent: bool,
    /// The peer puts markers into what it sends: this endpoint's frame had M=1.
    pub markers_received: bool,
    /// What RFC 6581 settled; `None` in an unenhanced connection.
    pub enhanced: Option<Agreed>,
    /// Ready-to-receive messages: the Initiator's is the one that it sends in front of everything,
    /// the Responder's are those of which it awaits one.
    pub rtr: RtrKinds,
}

impl Negotiated {
    /// How this endpoint's FPDUs look.
    #[must_use]
    pub const fn framing_sent(&self) -> Framing {
        Framing { markers: self.markers_sent, crc: self.crc }
    }

    /// How the peer's FPDUs look.
    #[must_use]
    pub const fn framing_received(&self) -> Framing {
        Framing { markers: self.markers_received, crc: self.crc }
    }
}
