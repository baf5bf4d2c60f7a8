//! What the monitor knows beyond the octets of a unit: it goes with the unit to whoever shows or
//! filters it.

use crate::follow::exchange::Exchange;
use crate::follow::sdp;
use crate::follow::ulp::{Said, Ulp};

/// What is known of a connection behind the unit at hand.
#[derive(Debug, Default)]
pub struct Context {
    /// The books of its SDP connection.
    pub sdp: Option<Box<sdp::Books>>,
    /// The exchange of the port mapper that a datagram is of; that which a connection follows, as
    /// it was then.
    pub exchange: Option<Exchange>,
    /// The protocol above RDMAP, where it is sure.
    pub ulp: Option<Ulp>,
    /// What the message of it says that the unit, an FPDU, ends.
    pub said: Option<Said>,
}

impl Context {
    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.sdp.as_ref().map_or(0, |books| books.memory())
    }
}
