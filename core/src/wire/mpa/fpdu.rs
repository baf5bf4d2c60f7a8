//! The FPDU: `ULPDU_Length (2) | ULPDU | PAD (0..3) | CRC (4)`. If a direction uses markers, there
//! is a marker at every stream position that is a multiple of 512 (RFC 5044 sections 4.1, 4.3).
//!
//! [`Layout`] computes the stream position of each part of one FPDU. [`emit()`] writes a complete
//! FPDU with its parts at these positions, and [`Fpdu`] reads the parts at these positions. The
//! phase (the remainder of marker positions modulo 512) is 0 according to the RFC. The monitor also
//! uses other phases, to read FPDUs with markers at wrong positions. A `Layout` contains no octets
//! and checks nothing.

mod emit;
mod read;

use std::ops::Range;

use crate::crc::CRC_LEN;
use crate::marker::{INTERVAL, MARKER_LEN};

pub use emit::{Framing, emit};
pub use read::{Fpdu, Marker};

/// Length of the `ULPDU_Length` field in octets.
pub const LENGTH_LEN: usize = 2;
/// Maximum ULPDU length in octets over TCP (RFC 5044 section 5.1).
pub const MAX_ULPDU: u16 = 64768;

/// Number of PAD octets after a ULPDU of `ulpdu_length` octets. PAD extends the length field and
/// the ULPDU to a multiple of four octets.
#[must_use]
pub fn pad_len(ulpdu_length: u16) -> usize {
    (LENGTH_LEN + usize::from(ulpdu_length)).wrapping_neg() % 4
}

/// Length in octets of an FPDU without markers, CRC field included.
#[must_use]
pub fn len_without_markers(ulpdu_length: u16) -> usize {
    LENGTH_LEN + usize::from(ulpdu_length) + pad_len(ulpdu_length) + CRC_LEN
}

/// A contiguous part of an FPDU in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Stream positions of octets of the length field, the ULPDU or PAD, without a marker.
    Body(Range<u64>),
    /// A marker.
    Marker {
        /// Stream position of the first octet of the marker.
        position: u64,
        /// Correct FPDUPTR: distance in octets back to `ULPDU_Length`, or 0 for a marker before
        /// `ULPDU_Length`.
        fpduptr: u16,
    },
}

/// The stream positions of the parts of one FPDU. Position 0 is the first octet after the start-up
/// frame of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Position of the first octet of the FPDU. If a marker is due at this position, the FPDU
    /// starts with that marker.
    pub start: u64,
    /// Position of the first octet of `ULPDU_Length`.
    pub header: u64,
    /// The value of `ULPDU_Length`.
    pub ulpdu_length: u16,
    /// Position of the CRC field, after PAD and after the marker that follows PAD (if there is
    /// one). The CRC covers `start..crc`.
    pub crc: u64,
    /// Position of the first octet after the FPDU.
    pub end: u64,
    /// Remainder of marker positions modulo 512; `None` if this direction has no markers.
    phase: Option<u16>,
}

impl Layout {
    /// Computes the layout of an FPDU that starts at position `start` and has a ULPDU of
    /// `ulpdu_length` octets. `phase` is the remainder of marker positions modulo 512 (0 according
    /// to RFC 5044), or `None` if this direction has no markers.
    #[must_use]
    pub fn new(start: u64, ulpdu_length: u16, phase: Option<u16>) -> Self {
        let header = header_position(start, phase);
        let body = (LENGTH_LEN + usize::from(ulpdu_length) + pad_len(ulpdu_length)) as u64;
        let crc = phase.map_or(header + body, |phase| {
            // Count the markers after the start of the length field, including a marker directly
            // after PAD.
            let into = (header.wrapping_sub(u64::from(phase))) % INTERVAL;
            let first = INTERVAL - into;
            let room = INTERVAL - MARKER_LEN as u64;
            let markers = if body < first { 0 } else { 1 + (body - first) / room };
            header + body + markers * MARKER_LEN as u64
        });
        Layout { start, header, ulpdu_length, crc, end: crc + CRC_LEN as u64, phase }
    }

    /// Returns the layout that the FPDU has if its sender omits the CRC field.
    #[must_use]
    pub fn without_crc_field(self) -> Self {
        Layout { end: self.crc, ..self }
    }

    /// Returns whether the FPDU starts with a marker.
    #[must_use]
    pub fn has_leading_marker(&self) -> bool {
        self.header != self.start
    }

    /// The `phase` that was passed to [`Layout::new`].
    #[must_use]
    pub fn phase(&self) -> Option<u16> {
        self.phase
    }

    /// Returns the parts of the FPDU before the CRC field, in stream order. The [`Piece::Body`]
    /// parts together are the length field, the ULPDU and PAD.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + use<> {
        let layout = *self;
        let mut at = layout.start;
        std::iter::from_fn(move || {
            if at >= layout.crc {
                return None;
            }
            let Some(phase) = layout.phase else {
                let from = at;
                at = layout.crc;
                return Some(Piece::Body(from..layout.crc));
            };
            let into = at.wrapping_sub(u64::from(phase)) % INTERVAL;
            if into == 0 {
                let position = at;
                at += MARKER_LEN as u64;
                let distance = position.saturating_sub(layout.header);
                // FPDUPTR has 16 bits. In an FPDU longer than 65,535 octets (which is illegal), the
                // pointers are modulo 2^16.
                return Some(Piece::Marker { position, fpduptr: (distance & 0xffff) as u16 });
            }
            let from = at;
            at = layout.crc.min(at + INTERVAL - into);
            Some(Piece::Body(from..at))
        })
    }

    /// Number of markers that belong to this FPDU.
    #[must_use]
    pub fn marker_count(&self) -> usize {
        let body = (LENGTH_LEN + usize::from(self.ulpdu_length) + pad_len(self.ulpdu_length)) as u64;
        usize::try_from((self.crc - self.start - body) / MARKER_LEN as u64).unwrap_or(usize::MAX)
    }
}

/// Returns the position of `ULPDU_Length` in an FPDU that starts at `start`: `start` itself, or
/// four octets later if a marker is due at `start`.
#[must_use]
pub fn header_position(start: u64, phase: Option<u16>) -> u64 {
    match phase {
        Some(phase) if start.wrapping_sub(u64::from(phase)).is_multiple_of(INTERVAL) => start + MARKER_LEN as u64,
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// In RFC 5044 Figure 5, an FPDU with a leading marker and a 42-octet ULPDU has 52 octets.
    #[test]
    fn figure_5() {
        let layout = Layout::new(0, 42, Some(0));
        assert_eq!((layout.header, layout.crc, layout.end), (4, 48, 52));
        assert_eq!(
            layout.pieces().collect::<Vec<_>>(),
            [Piece::Marker { position: 0, fpduptr: 0 }, Piece::Body(4..48)]
        );
    }

    /// In RFC 5044 Figure 6, the FPDU is at 0x1EC. Its marker at 0x200 points back 0x14 octets.
    #[test]
    fn figure_6() {
        let layout = Layout::new(0x1ec, 42, Some(0));
        let marker = Piece::Marker { position: 0x200, fpduptr: 0x14 };
        assert!(layout.pieces().any(|piece| piece == marker));
        assert_eq!(layout.end - layout.start, 52);
    }

    /// A marker between PAD and CRC belongs to the FPDU. A marker directly after the CRC belongs to
    /// the next FPDU (RFC 5044 section 4.3).
    #[test]
    fn markers_at_the_end() {
        let between = Layout::new(488, 19, Some(0));
        assert_eq!((between.crc, between.end, between.marker_count()), (516, 520, 1));
        let before_marker = Layout::new(484, 19, Some(0));
        assert_eq!((before_marker.end, before_marker.marker_count()), (512, 0));
        assert!(Layout::new(512, 19, Some(0)).has_leading_marker());
    }

    /// If TCP segments have 1460 octets, a ULPDU of 1442 octets fills a segment. The FPDU of this
    /// ULPDU has markers at 0, 512 and 1024.
    #[test]
    fn a_full_segment() {
        let layout = Layout::new(0, 1442, Some(0));
        assert_eq!((layout.end, layout.marker_count()), (1460, 3));
        let pointers: Vec<u16> = layout
            .pieces()
            .filter_map(|p| if let Piece::Marker { fpduptr, .. } = p { Some(fpduptr) } else { None })
            .collect();
        assert_eq!(pointers, [0, 0x1fc, 0x3fc]);
    }

    proptest! {
        /// `Layout` computes the positions of the parts with a formula. The result is the same as
        /// that of a walk from octet to octet by the rules of RFC 5044 section 4.3.
        #[test]
        fn agrees_with_walking(start in 0u64..2048, ulpdu_length: u16, phase in proptest::option::of(0u16..128)) {
            let (start, phase) = (start * 4, phase.map(|p| p * 4));
            let layout = Layout::new(start, ulpdu_length, phase);
            let due = |at: u64| phase.is_some_and(|p| at % 512 == u64::from(p));
            let mut at = start;
            let mut markers = Vec::new();
            if due(at) { markers.push(at); at += 4; }
            prop_assert_eq!(layout.header, at);
            for _ in 0..2 + usize::from(ulpdu_length) + pad_len(ulpdu_length) {
                at += 1;
                if due(at) { markers.push(at); at += 4; }
            }
            prop_assert_eq!(layout.crc, at);
            prop_assert_eq!(layout.end, at + 4);
            prop_assert_eq!(layout.marker_count(), markers.len());
            let walked: Vec<u64> = layout.pieces()
                .filter_map(|p| if let Piece::Marker { position, .. } = p { Some(position) } else { None }).collect();
            prop_assert_eq!(walked, markers);
        }
    }
}
