//! Violations of MPA by the peer.

use weft_core::{RequirementId, WireError, requirement};

use super::Role;

/// A fault in the peer's start-up frame. This endpoint closes the connection at once (MPA error 4,
/// RFC 5044 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartupError {
    /// This endpoint sent a Request, and the peer's frame also has the key of a Request. Both
    /// endpoints are Initiators ("active/active").
    #[error("the peer also sent a Request, so both endpoints are Initiators")]
    BothInitiators,
    /// The peer closed its direction of the connection before the frame was complete.
    #[error("the peer sent a FIN after {received} bytes of its start-up frame")]
    CutShort {
        /// Number of the frame's bytes that arrived.
        received: usize,
    },
    /// The bytes are not a valid frame of the expected kind.
    #[error("malformed start-up frame: {0}")]
    Malformed(WireError),
    /// Bytes arrived after the start-up frame, at a time when the peer must not send any bytes.
    #[error("{octets} bytes follow the start-up frame, but the peer must not send yet")]
    Surplus {
        /// Number of bytes after the frame.
        octets: usize,
    },
    /// The Request is for the enhanced set-up of RFC 6581, which this endpoint does not support.
    #[error("the Request uses the enhanced connection set-up (Rev 2, S=1), which this endpoint does not support")]
    UnsupportedEnhanced,
    /// This endpoint does not support the revision of the peer's frame.
    #[error("this endpoint does not support MPA revision {revision} of the peer's {} frame", .receiver.peer_frame())]
    UnsupportedRevision {
        /// Revision in the peer's frame.
        revision: u8,
        /// Role of this endpoint, which received the frame.
        receiver: Role,
    },
}

impl StartupError {
    /// The requirement that the peer violated. If the peer violated no requirement, this is the
    /// requirement that made this endpoint close the connection.
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

/// A fault in an FPDU of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FpduError {
    /// MPA error 2: the CRC of the FPDU is wrong.
    #[error("wrong CRC in the FPDU at stream byte {position}: computed {computed:#010x}, found {found:#010x}")]
    Crc {
        /// Position of the FPDU: number of bytes after the peer's start-up frame.
        position: u64,
        /// CRC32c computed from the received bytes.
        computed: u32,
        /// Value of the CRC field.
        found: u32,
    },
    /// MPA error 3: a marker does not point to the `ULPDU_Length` of its FPDU. If CRCs are in use,
    /// the CRC of the FPDU is right.
    #[error(
        "wrong marker at stream byte {position}: \
         expected FPDUPTR {expected:#06x} (the distance back to ULPDU_Length), found {found:#06x}"
    )]
    Marker {
        /// Position of the marker: number of bytes after the peer's start-up frame.
        position: u64,
        /// Distance from the marker back to `ULPDU_Length`, in bytes.
        expected: u16,
        /// Received value of FPDUPTR.
        found: u16,
    },
}

impl FpduError {
    /// The requirement that obliges a receiver to detect this fault.
    #[must_use]
    pub fn requirement(&self) -> RequirementId {
        match self {
            FpduError::Crc { .. } => requirement!("MPA-8-2"),
            FpduError::Marker { .. } => requirement!("MPA-8-3"),
        }
    }
}
