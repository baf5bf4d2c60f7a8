//! The SDP port mapper: draft-pinkerton-iwarp-sdp-01, section 7.3.
//!
//! One message format of 48 octets, each message in a UDP datagram of its own. The port mapper
//! daemon of Linux speaks it too, with a longer Request. Exchanges and their state are not known
//! here.

mod message;
mod pm_time;

pub use message::{Addresses, Mapped, Message, MessageType, RawMapped, RawMessage};
pub use pm_time::{Cache, PmTime};

/// The UDP port of the service (section 16).
pub const UDP_PORT: u16 = 3935;
