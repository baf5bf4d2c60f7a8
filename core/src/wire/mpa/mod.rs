//! Marker PDU Aligned framing for TCP: RFC 5044, with the enhanced connection set-up of RFC 6581.

pub mod fpdu;
pub mod mulpdu;
pub mod startup;

pub use fpdu::{Fpdu, Framing, Layout};
pub use mulpdu::mulpdu;
pub use startup::{Enhanced, RawStartup, Startup, StartupKind};
