//! What the hooks work on: a right FPDU, segment, completion or message, and what is done in its
//! place; and the flags for what is done or left out.
//!
//! The correct code knows these types and [`hook`](super::hook), and no deviation.

pub(super) mod completion;
pub(super) mod conduct;
pub(super) mod fate;
pub(super) mod fpdu;
pub(super) mod port_mapper;
pub(super) mod sdp;
pub(super) mod sdp_conduct;
pub(super) mod sdp_twin;
pub(super) mod segment;
