//! [`Context`] is the knowledge of the monitor about a unit that the octets of the unit do not
//! show. A unit is an FPDU, a start-up frame, an SDP message or a datagram. Outputs and filters
//! receive this knowledge with each unit.

use super::exchange::Exchange;
use super::sdp;
use crate::upper::{Ulp, UlpMessage};

/// The state of a connection after the current unit.
#[derive(Debug, Default)]
pub struct Context {
    /// The state of the SDP connection; `None` if the connection does not carry SDP.
    pub sdp: Option<Box<sdp::SdpState>>,
    /// For a datagram, this is its port mapper exchange. For a connection, this is the exchange
    /// that the connection follows, in its state when the connection was opened.
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
