//! Errors of a peer at the MPA layer.

use weft_core::{RequirementId, WireError, requirement};

use super::Role;

/// A start-up frame that ends the connection at once (MPA error 4, RFC 5044 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartupError {
    /// The peer's frame has the key of a Request, and so has this endpoint's: both are Initiators
    /// ("active/active").
    #[error("the peer sends a Request, too: both sides are Initiators")]
    BothInitiators,
    /// The peer closed its half in the middle of the frame.
    #[error("the start-up frame ends after {received} bytes")]
    CutShort {
        /// Octets of the frame that had arrived.
        received: usize,
    },
    /// The octets are no frame of the kind that is due.
    #[error("malformed start-up frame: {0}")]
    Malformed(WireError),
    /// More octets arrived than the frame has, before the peer may send any.
    #[error("{octets} bytes after the start-up frame, before any may be sent")]
    Surplus {
        /// How many.
        octets: usize,
    },
    /// The Request wants the enhanced set-up of RFC 6581, which this endpoint does not have.
    #[error("the Request asks for the enhanced connection set-up (Rev 2, S=1)")]
    UnsupportedEnhanced,
    /// A revision that this endpoint cannot work with.
    #[error("MPA revision {revision} in the peer's {} frame", .receiver.peer_frame())]
    UnsupportedRevision {
        /// The peer's Rev.
        revision: u8,
        /// The receiver.
        receiver: Role,
    },
}

impl StartupError {
    /// The requirement that the peer broke, or that makes this endpoint close.
    #[must_use]
    pub fn requirement(&self) -> RequirementId {
        match self {
            StartupError::BothInitiators => requirement!("MPA-7.1.2-22"),
            StartupError::CutShort { .. } | StartupError::Surplus { .. } => requirement!("MPA-7.1.1-26"),
            StartupError::Malformed(error) => error.requirement.unwrap_or(requirement!("MPA-7.1.2-24")),
            StartupError::UnsupportedEnhanced => requirement!("P2P-10-4"),
            StartupError::UnsupportedRevision { .. } => requirement!("MPA-7.1.1-22"),
        }
    }
}

/// An FPDU that is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FpduError {
    /// MPA error 2.
    #[error("CRC of the FPDU at stream byte {position}: computed {computed:#010x}, found {found:#010x}")]
    Crc {
        /// Where the FPDU starts, in octets after the peer's start-up frame.
        position: u64,
        /// CRC32c of the octets that arrived.
        computed: u32,
        /// The CRC field.
        found: u32,
    },
    /// MPA error 3: the CRC, where there is one, is right, and a marker points elsewhere than to
    /// the FPDU's `ULPDU_Length`.
    #[error(
        "marker at stream byte {position}: FPDUPTR {found:#06x}: expected {expected:#06x}, which points to ULPDU_Length"
    )]
    Marker {
        /// Where the marker starts, in octets after the peer's start-up frame.
        position: u64,
        /// The distance back to `ULPDU_Length`.
        expected: u16,
        /// FPDUPTR as it came.
        found: u16,
    },
}

impl FpduError {
    /// The requirement by which it is found.
    #[must_use]
    pub fn requirement(&self) -> RequirementId {
        match self {
            FpduError::Crc { .. } => requirement!("MPA-8-2"),
            FpduError::Marker { .. } => requirement!("MPA-8-3"),
        }
    }
}
