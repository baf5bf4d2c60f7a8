//! What the monitor knows about a unit beyond its octets. A unit is an FPDU, a start-up frame, an
//! SDP message or a datagram. Outputs and filters receive this knowledge with each unit.

use super::exchange::Exchange;
use super::sdp;
use crate::upper::{Ulp, UlpMessage};

/// The state of a connection after the current unit.
#[derive(Debug, Default)]
pub struct Context {
    /// The state of the SDP connection; `None` if the connection does not carry SDP.
    pub sdp: Option<Box<sdp::SdpState>>,
    /// For a datagram: its port mapper exchange. For a connection: the exchange that the connection
    /// follows, as it was when the connection opened.
    pub exchange: Option<Exchange>,
    /// The protocol above RDMAP, if it is certain.
    pub ulp: Option<Ulp>,
    /// The ULP message that ends with the current FPDU, if it could be parsed.
    pub ulp_message: Option<UlpMessage>,
}

impl Context {
    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.sdp.as_ref().map_or(0, |sdp| sdp.memory())
    }
}
