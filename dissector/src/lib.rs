#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! source -> link -> ip -> tcp -> framing -> Unit -> grammar -> tree, output
//!                                            |
//!                                            +---> follow -> rules -> Finding
//! ```
//!
//! | module | purpose |
//! | --- | --- |
//! | [`source`], [`mod@link_type`] | reads frames from a capture; the link types of frames |
//! | `link`, `ip`, `tcp` | extract the bytes of each direction of a connection from the frames |
//! | `framing` | splits these bytes into start-up frames, FPDUs and other bytes |
//! | [`parse`] | the protocol units that framing produces, for example start-up frames and FPDUs |
//! | [`mod@unit`] | protocol units with the state of their connection |
//! | [`grammar`] | fields of a unit: names, values, bytes |
//! | `follow`, [`fact`] | the monitor's state of a connection, and facts derived from the state |
//! | [`upper`] | protocols above RDMAP |
//! | [`context`], [`sdp`], [`exchange`] | the state that a sink receives with a unit |
//! | [`rules`] | the requirements that the monitor checks |
//! | [`filter`] | display filters |
//! | [`stats`] | statistics of each connection |
//! | [`io`] | storage commands, and the operations that served them |
//! | [`diagnosis`] | what happened on each connection, and why it ended |
//! | [`contents`] | names of protocols other than iWARP |
//! | [`tree`], [`output`] | text and machine-readable output |
//! | [`scrub`] | replaces payload and addresses, so that a capture can be shared |
//! | [`browse`] | random access to a capture, for interactive readers |
//!
//! This crate shares the wire types of `weft-core` with weft's endpoint, but no state machines. A
//! finding therefore never depends on the state of the endpoint.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

pub mod browse;
mod calendar;
mod connections;
pub mod contents;
pub mod diagnosis;
mod direction;
mod dissector;
mod dropped;
pub mod fact;
pub mod filter;
mod finding;
mod follow;
mod format;
mod frame_number;
mod framing;
pub mod grammar;
pub mod io;
mod ip;
mod joined;
mod link;
pub mod link_type;
mod location;
mod monitor;
pub mod output;
mod packet;
pub mod parse;
pub mod part;
mod path;
mod retransmission;
pub mod rules;
pub mod scrub;
mod sink;
pub mod source;
pub mod stats;
mod stream_id;
mod tcp;
#[cfg(test)]
mod testing;
pub mod tree;
pub mod unit;
pub mod upper;

pub use direction::Direction;
pub use dissector::Dissector;
pub use dropped::DroppedState;
pub use finding::Finding;
pub use follow::{context, exchange, sdp};
pub use frame_number::FrameNumber;
pub use joined::JoinedConnections;
pub use link::{SkipReason, reads_link_type};
pub use location::Location;
pub use packet::{Packet, TcpSegment, TransportKind};
pub use sink::Sink;
pub use stream_id::{StreamId, StreamSet};
