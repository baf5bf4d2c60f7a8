//! What MPA start-up settled for a stream.

use weft_core::wire::mpa::{Framing, mulpdu};

use crate::mpa::{Negotiated, Role, RtrKinds};

/// What start-up settled for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LlpSettings {
    /// Version of DDP and RDMAP: 1, or 0 for the RDMA Consortium's protocols.
    pub version: u8,
    /// How FPDUs look that go out.
    pub framing_sent: Framing,
    /// How FPDUs look that come in.
    pub framing_received: Framing,
    /// Effective maximum segment size in octets.
    pub emss: u32,
    /// FPDUs may be sent before one arrived: true of the MPA Initiator (MPA-7.1.2-17).
    pub speaks_first: bool,
    /// Ready-to-receive messages (RFC 6581): the one that is sent in front of everything when this
    /// side speaks first, otherwise those of which the peer's first message may be one.
    pub rtr: RtrKinds,
    /// Octets that are kept from before RTS. Default 65,536; a driver should read no more.
    pub max_early: usize,
}

impl LlpSettings {
    /// The settings after a successful start-up.
    #[must_use]
    pub fn new(negotiated: &Negotiated, emss: u32) -> Self {
        LlpSettings {
            version: negotiated.version,
            framing_sent: negotiated.framing_sent(),
            framing_received: negotiated.framing_received(),
            emss,
            speaks_first: negotiated.role == Role::Initiator,
            rtr: negotiated.rtr,
            max_early: 1 << 16,
        }
    }

    pub(super) fn mulpdu(&self) -> u16 {
        mulpdu(self.emss, self.framing_sent.markers)
    }
}
