//! The fields of a start-up frame, kept for the length of the connection.

use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{Enhanced, FLAG_C, FLAG_M, FLAG_R, FLAG_S, HEADER_LEN, RawEnhanced, RawStartup};
use zerocopy::FromBytes;

use crate::parse::{Located, Unit};
use crate::part::Part;

/// A start-up frame that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartupSeen {
    /// Request or Reply.
    pub kind: StartupKind,
    /// The frame of the capture that completed it.
    pub frame: u64,
    /// Where its header is, as far as that is in one piece.
    pub header: Located,
    /// Octet 16.
    pub flags: u8,
    /// Octet 17.
    pub revision: u8,
    /// Octets 18 and 19.
    pub pd_length: u16,
    /// The IRD and ORD fields of RFC 6581, if S announces them and the frame has room for them.
    pub words: Option<Enhanced>,
    /// Octets of the frame that exist; fewer than announced if the direction ends early.
    pub len: usize,
    /// Stream position after it.
    pub end: u64,
    /// Are all octets of `len` in the capture?
    pub complete: bool,
}

impl StartupSeen {
    /// Reads the frame in `part`; `None` if its header was not captured.
    pub(super) fn of(kind: StartupKind, part: Part<'_>, unit: &Unit<'_>) -> Option<Self> {
        let (raw, _) = RawStartup::read_from_prefix(part.get(0..HEADER_LEN)?).ok()?;
        let pd_length = raw.pd_length.get();
        let enhanced = raw.revision >= 2 && raw.flags & FLAG_S != 0 && pd_length >= 4;
        let words = part.get(HEADER_LEN..HEADER_LEN + 4).filter(|_| enhanced);
        let words = words.and_then(|octets| RawEnhanced::read_from_bytes(octets).ok()).map(Enhanced::from_raw);
        let (flags, revision, len) = (raw.flags, raw.revision, part.len());
        let (complete, end) = (part.is_complete(), unit.position() + len as u64);
        let header = unit.locate_first(0..HEADER_LEN);
        Some(StartupSeen { kind, frame: unit.frame, header, flags, revision, pd_length, words, len, end, complete })
    }

    /// M.
    pub(crate) fn wants_markers(&self) -> bool {
        self.flags & FLAG_M != 0
    }

    /// C.
    pub(crate) fn wants_crc(&self) -> bool {
        self.flags & FLAG_C != 0
    }

    /// R.
    pub(crate) fn rejects(&self) -> bool {
        self.flags & FLAG_R != 0
    }

    /// S of revision 2.
    pub(crate) fn is_enhanced(&self) -> bool {
        self.revision >= 2 && self.flags & FLAG_S != 0
    }

    /// Private Data octets that exist.
    pub(crate) fn private_len(&self) -> usize {
        self.len.saturating_sub(HEADER_LEN)
    }
}
