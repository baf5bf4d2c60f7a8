//! The SDP port mapper: draft-pinkerton-iwarp-sdp-01, section 7.3.
//!
//! All messages have one format of 48 octets, and each message has its own UDP datagram. The port
//! mapper daemon of Linux uses the same format, but its Request is longer. This module keeps no
//! state about exchanges of messages.

mod message;
mod pm_time;

pub use message::{Addresses, Mapped, Message, MessageType, RawMapped, RawMessage};
pub use pm_time::{Cache, PmTime};

/// The UDP port of the service (section 16).
pub const UDP_PORT: u16 = 3935;
