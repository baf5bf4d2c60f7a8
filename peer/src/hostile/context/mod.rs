//! Data of the hooks: a correct FPDU, segment, completion or message, together with its
//! replacement. This module also contains the flags for actions that a deviation adds or omits.
//!
//! The correct code uses these types and [`hook`](super::hook), but no deviation.

pub(super) mod completion;
pub(super) mod conduct;
pub(super) mod connection_outcome;
pub(super) mod fpdu;
pub(super) mod port_mapper;
pub(super) mod reassembly;
pub(super) mod sdp;
pub(super) mod sdp_conduct;
pub(super) mod sdp_hostile;
pub(super) mod segment;
