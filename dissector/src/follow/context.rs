//! The monitor's knowledge beyond the octets of a unit. It goes with the unit to outputs and
//! filters.

use super::exchange::Exchange;
use super::sdp;
use crate::upper::{Ulp, UlpMessage};

/// The state of a connection after the current unit.
#[derive(Debug, Default)]
pub struct Context {
    /// The state of its SDP connection.
    pub sdp: Option<Box<sdp::SdpState>>,
    /// The port mapper exchange of a datagram. For a connection: the exchange that it follows, as
    /// it was then.
    pub exchange: Option<Exchange>,
    /// The protocol above RDMAP, if it is certain.
    pub ulp: Option<Ulp>,
    /// The parsed message that the unit, an FPDU, ends.
    pub ulp_message: Option<UlpMessage>,
}

impl Context {
    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.sdp.as_ref().map_or(0, |sdp| sdp.memory())
    }
}
