//! The fields of an MPA start-up frame. These fields are kept until the connection ends.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{Enhanced, FLAG_C, FLAG_M, FLAG_R, FLAG_S, HEADER_LEN, RawEnhanced, RawStartup};
use zerocopy::FromBytes;

use crate::frame_number::FrameNumber;
use crate::parse::{Location, Unit};
use crate::part::Part;

/// A captured start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartupFrame {
    /// Request or Reply.
    pub kind: StartupKind,
    /// Number of the captured frame that completed the start-up frame.
    pub frame: FrameNumber,
    /// Location of the header. If the header is in several pieces, this is the location of the
    /// first piece.
    pub header: Location,
    /// The flags (octet 16).
    pub flags: u8,
    /// The revision (octet 17).
    pub revision: u8,
    /// PD_Length (octets 18 and 19).
    pub pd_length: u16,
    /// The fields IRD and ORD of RFC 6581. They are present if the S flag announces them and the
    /// frame is long enough.
    pub words: Option<Enhanced>,
    /// Length of the frame in octets. If the direction ends inside the frame, this is less than the
    /// announced length.
    pub len: usize,
    /// Stream position after the start-up frame.
    pub end: u64,
    /// Whether all `len` octets were captured.
    pub complete: bool,
}

impl StartupFrame {
    /// Reads the start-up frame in `part`; `None` if its header was not captured.
    pub(super) fn read(kind: StartupKind, part: Part<'_>, unit: &Unit<'_>) -> Option<Self> {
        let (raw, _) = RawStartup::read_from_prefix(part.get(0..HEADER_LEN)?).ok()?;
        let pd_length = raw.pd_length.get();
        let enhanced = raw.revision >= 2 && raw.flags & FLAG_S != 0 && pd_length >= 4;
        let words = part.get(HEADER_LEN..HEADER_LEN + 4).filter(|_| enhanced);
        let words = words.and_then(|octets| RawEnhanced::read_from_bytes(octets).ok()).map(Enhanced::from_raw);
        let (flags, revision, len) = (raw.flags, raw.revision, part.len());
        let (complete, end) = (part.is_complete(), unit.position() + len as u64);
        let header = unit.locate_first(0..HEADER_LEN);
        Some(StartupFrame { kind, frame: unit.frame, header, flags, revision, pd_length, words, len, end, complete })
    }

    /// Returns whether the M flag is set. A set M flag means that the sender wants to receive
    /// markers.
    pub(crate) fn wants_markers(&self) -> bool {
        self.flags & FLAG_M != 0
    }

    /// Returns whether the C flag is set. A set C flag means that the sender wants CRCs in both
    /// directions.
    pub(crate) fn wants_crc(&self) -> bool {
        self.flags & FLAG_C != 0
    }

    /// Returns whether the R flag is set. A set R flag means that the sender rejects the
    /// connection.
    pub(crate) fn rejects(&self) -> bool {
        self.flags & FLAG_R != 0
    }

    /// Returns whether the frame has revision 2 or later and the S flag is set. A set S flag means
    /// that the fields IRD and ORD are present.
    pub(crate) fn is_enhanced(&self) -> bool {
        self.revision >= 2 && self.flags & FLAG_S != 0
    }

    /// Length in octets of the private data in the frame.
    pub(crate) fn private_len(&self) -> usize {
        self.len.saturating_sub(HEADER_LEN)
    }
}
