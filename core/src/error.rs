//! What is wrong with octets: the one error type of every parser here.
//!
//! It has layer, field, offset, expected, found and (where one exists) the requirement, so that a
//! user needs no source code to understand it. It borrows nothing and allocates nothing. This type
//! only describes the octets; the Terminate code for a peer is chosen elsewhere.

use std::fmt;

use crate::requirement::RequirementId;

/// The protocol layer whose octets are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// Marker PDU Aligned framing, RFC 5044 and RFC 6581.
    Mpa,
    /// Direct Data Placement, RFC 5041.
    Ddp,
    /// Remote Direct Memory Access Protocol, RFC 5040 and RFC 7306.
    Rdmap,
    /// Sockets Direct Protocol.
    Sdp,
    /// The SDP port mapper.
    SdpPm,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Mpa => "MPA",
            Layer::Ddp => "DDP",
            Layer::Rdmap => "RDMAP",
            Layer::Sdp => "SDP",
            Layer::SdpPm => "SDP port mapper",
        })
    }
}

/// The value that was found in the octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A number.
    Value(u64),
    /// This number of octets (too few, or too many).
    Octets(usize),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Value(v) => write!(f, "{v} ({v:#x})"),
            Found::Octets(1) => f.write_str("1 octet"),
            Found::Octets(n) => write!(f, "{n} octets"),
        }
    }
}

/// Octets that do not make the thing they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{layer} {field} at byte {offset}: expected {expected}, found {found}{}", Cited(*.requirement))]
pub struct WireError {
    /// The layer that the field belongs to.
    pub layer: Layer,
    /// The field, named as its specification names it.
    pub field: &'static str,
    /// Offset of the field in octets from the start of the frame, segment or message that was
    /// parsed.
    pub offset: usize,
    /// What would have been right, in words.
    pub expected: &'static str,
    /// What was there.
    pub found: Found,
    /// The rule that is broken, where the catalogue has one.
    pub requirement: Option<RequirementId>,
}

impl WireError {
    /// `have` octets are there where the fixed part of `field` needs more.
    #[must_use]
    pub fn too_short(layer: Layer, field: &'static str, expected: &'static str, have: usize) -> Self {
        WireError { layer, field, offset: 0, expected, found: Found::Octets(have), requirement: None }
    }
}

struct Cited(Option<RequirementId>);

impl fmt::Display for Cited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |id| write!(f, " ({id})"))
    }
}
