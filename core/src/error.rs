//! [`WireError`]: the error type of every parser in this crate.
//!
//! The error names the layer, the field, its offset, the expected value and the found value. It
//! also names the violated requirement if a catalogue contains this requirement. A user can
//! therefore understand the error without the source code. The type borrows nothing and allocates
//! nothing. A `WireError` only describes the octets. It has no Terminate code, because the endpoint
//! chooses this code.

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
    /// A number of octets that is too small or too large.
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

/// The error for octets that are not a valid header, frame, segment or message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{layer} {field} at byte {offset}: expected {expected}, found {found}{}", Citation(*.requirement))]
pub struct WireError {
    /// The layer that the field belongs to.
    pub layer: Layer,
    /// Name of the field in its specification.
    pub field: &'static str,
    /// Offset of the field in octets from the start of the parsed frame, segment or message.
    pub offset: usize,
    /// Description of the valid values or lengths.
    pub expected: &'static str,
    /// The value or length that the parser found.
    pub found: Found,
    /// The violated requirement; `None` if no catalogue has a requirement for this error.
    pub requirement: Option<RequirementId>,
}

impl WireError {
    /// The error for an input of `have` octets that is too short for the fixed part of `field`. The
    /// error has offset 0 and no requirement.
    #[must_use]
    pub fn too_short(layer: Layer, field: &'static str, expected: &'static str, have: usize) -> Self {
        WireError { layer, field, offset: 0, expected, found: Found::Octets(have), requirement: None }
    }
}

struct Citation(Option<RequirementId>);

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |id| write!(f, " ({id})"))
    }
}
