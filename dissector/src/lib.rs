//! The one who watches: captures to protocol units.
//!
//! ```text
//! source -> link -> ip -> tcp -> framing -> Unit -> grammar -> tree, output
//!                                            |
//!                                            +---> follow -> rules -> Finding
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`source`] | captures to frames |
//! | `link`, `ip`, `tcp` | frames to the octets of each direction of a connection |
//! | `framing` | octets to start-up frames, FPDUs, and what is neither |
//! | [`mod@unit`] | what framing hands out |
//! | [`grammar`] | a unit's fields: names, values, octets |
//! | `follow`, [`fact`] | what the monitor remembers of a connection, and what of it others may know |
//! | [`context`], [`sdp`], [`exchange`], [`ulp`] | what of that goes with a unit |
//! | [`rules`] | what it judges |
//! | [`filter`] | which of it is wanted |
//! | [`stats`] | numbers of each connection |
//! | [`tree`], [`output`] | for readers |
//! | [`browse`] | for whoever leafs through a capture |
//!
//! This crate shares the wire types of `weft-core` with the endpoint and none of its state machines: what it says of a
//! connection never rests on the endpoint's own opinion. It opens no sockets and reads no clock.
#![forbid(unsafe_code)]

pub mod browse;
mod connections;
pub mod context;
mod digits;
mod dissector;
pub mod fact;
pub mod filter;
mod finding;
mod follow;
mod framing;
pub mod grammar;
mod ip;
mod link;
pub mod output;
mod packet;
pub mod part;
pub mod rules;
pub mod source;
pub mod stats;
mod tcp;
#[cfg(test)]
mod testing;
pub mod tree;
pub mod unit;

pub use dissector::{Dissector, Sink};
pub use finding::Finding;
pub use follow::{exchange, sdp, ulp};
pub use link::reads_link_type;
pub use packet::{Packet, TransportKind};
pub use unit::Located;
