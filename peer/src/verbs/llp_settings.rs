//! Result of MPA start-up for a stream.

use weft_core::wire::mpa::{Framing, mulpdu};

use crate::mpa::{Negotiated, Role, RtrKinds};

/// Settings of a stream. They are the result of MPA start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LlpSettings {
    /// Version of DDP and RDMAP: 1, or 0 for the RDMA Consortium's protocols.
    pub version: u8,
    /// Format of the sent FPDUs.
    pub framing_sent: Framing,
    /// Format of the received FPDUs.
    pub framing_received: Framing,
    /// Effective maximum segment size in bytes.
    pub emss: u32,
    /// This endpoint may send FPDUs before an FPDU has arrived. True for the MPA Initiator
    /// (MPA-7.1.2-17).
    pub speaks_first: bool,
    /// Kinds of ready-to-receive message (RFC 6581). If `speaks_first` is true, the set contains
    /// the kind that this endpoint sends as its first message. Otherwise, the set contains the
    /// kinds that the peer's first message may have.
    pub rtr: RtrKinds,
    /// Greatest number of bytes that the RNIC stores before the Queue Pair is in RTS. If more bytes
    /// arrive, the RNIC resets the stream. Therefore a driver should not read more bytes than this
    /// number. Default 65,536.
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
