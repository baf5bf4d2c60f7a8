//! The FPDU: `ULPDU_Length (2) | ULPDU | PAD (0..3) | CRC (4)`, with markers where they are due (RFC 5044 sections 4.1, 4.3).
//!
//! [`Layout`] has the position of each part of one FPDU in the stream. The endpoint writes and
//! reads along it; the monitor reads along it, also with markers in wrong places (a phase of its
//! own). It holds no octets and judges nothing. [`emit()`] writes a complete FPDU along it,
//! [`Fpdu`] reads one.

mod emit;
mod read;

use std::ops::Range;

use crate::crc::CRC_LEN;
use crate::marker::{INTERVAL, MARKER_LEN};

pub use emit::{Framing, emit};
pub use read::{Fpdu, Marker};

/// Octets of `ULPDU_Length`.
pub const LENGTH_LEN: usize = 2;
/// Greatest ULPDU that RFC 5044 section 5.1 lets an FPDU carry over TCP.
pub const MAX_ULPDU: u16 = 64768;

/// Octets of PAD after a ULPDU of `ulpdu_length` octets: they bring length field, ULPDU and PAD to
/// a multiple of four.
#[must_use]
pub fn pad_len(ulpdu_length: u16) -> usize {
    (LENGTH_LEN + usize::from(ulpdu_length)).wrapping_neg() % 4
}

/// Octets of an FPDU without markers.
#[must_use]
pub fn len_without_markers(ulpdu_length: u16) -> usize {
    LENGTH_LEN + usize::from(ulpdu_length) + pad_len(ulpdu_length) + CRC_LEN
}

/// A part of an FPDU in the stream, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Length field, ULPDU or PAD octets.
    Body(Range<u64>),
    /// A marker at `position` whose FPDUPTR should be `fpduptr`.
    Marker {
        /// Stream position of its first octet.
        position: u64,
        /// Distance back to `ULPDU_Length`; 0 when the marker precedes it.
        fpduptr: u16,
    },
}

/// The positions of the parts of one FPDU: stream octets from the first one after the sender's
/// start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// First octet of the FPDU; a leading marker's, where one is due.
    pub start: u64,
    /// First octet of `ULPDU_Length`.
    pub header: u64,
    /// The value of `ULPDU_Length`.
    pub ulpdu_length: u16,
    /// First octet after PAD and after a marker there: the CRC field. The CRC covers `start..crc`.
    pub crc: u64,
    /// First octet after the FPDU.
    pub end: u64,
    /// Residue modulo 512 of marker positions (0 when all is right); `None`: no markers in this
    /// direction.
    phase: Option<u16>,
}

impl Layout {
    /// The FPDU of `ulpdu_length` octets that starts at `start`. `phase` is the residue modulo 512
    /// of the positions at which markers are, 0 as RFC 5044 has it; `None` without markers.
    #[must_use]
    pub fn new(start: u64, ulpdu_length: u16, phase: Option<u16>) -> Self {
        let header = header_position(start, phase);
        let body = (LENGTH_LEN + usize::from(ulpdu_length) + pad_len(ulpdu_length)) as u64;
        let crc = phase.map_or(header + body, |phase| {
            // Every marker that is due after the length field's start, up to and including right
            // after PAD.
            let into = (header.wrapping_sub(u64::from(phase))) % INTERVAL;
            let first = INTERVAL - into;
            let room = INTERVAL - MARKER_LEN as u64;
            let markers = if body < first { 0 } else { 1 + (body - first) / room };
            header + body + markers * MARKER_LEN as u64
        });
        Layout { start, header, ulpdu_length, crc, end: crc + CRC_LEN as u64, phase }
    }

    /// The same FPDU as a sender writes it that leaves out the CRC field.
    #[must_use]
    pub fn without_crc_field(self) -> Self {
        Layout { end: self.crc, ..self }
    }

    /// Does a marker precede `ULPDU_Length`?
    #[must_use]
    pub fn has_leading_marker(&self) -> bool {
        self.header != self.start
    }

    /// The phase that it was made with.
    #[must_use]
    pub fn phase(&self) -> Option<u16> {
        self.phase
    }

    /// Body stretches and markers in stream order, up to the CRC field. Body stretches together are
    /// length field, ULPDU, PAD.
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
                // An FPDU longer than 65,535 octets (no legal one is) has pointers modulo 2^16: the
                // field holds no more.
                return Some(Piece::Marker { position, fpduptr: (distance & 0xffff) as u16 });
            }
            let from = at;
            at = layout.crc.min(at + INTERVAL - into);
            Some(Piece::Body(from..at))
        })
    }

    /// How many markers belong to this FPDU.
    #[must_use]
    pub fn marker_count(&self) -> usize {
        let body = (LENGTH_LEN + usize::from(self.ulpdu_length) + pad_len(self.ulpdu_length)) as u64;
        usize::try_from((self.crc - self.start - body) / MARKER_LEN as u64).unwrap_or(usize::MAX)
    }
}

/// The position of `ULPDU_Length` of an FPDU that starts at `start`: after a marker, if one is due.
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

    /// RFC 5044 Figure 5: an FPDU with a leading marker and a 42-octet ULPDU has 52 octets.
    #[test]
    fn figure_5() {
        let layout = Layout::new(0, 42, Some(0));
        assert_eq!((layout.header, layout.crc, layout.end), (4, 48, 52));
        assert_eq!(
            layout.pieces().collect::<Vec<_>>(),
            [Piece::Marker { position: 0, fpduptr: 0 }, Piece::Body(4..48)]
        );
    }

    /// RFC 5044 Figure 6: at 0x1EC the marker at 0x200 points back 0x14 octets.
    #[test]
    fn figure_6() {
        let layout = Layout::new(0x1ec, 42, Some(0));
        let marker = Piece::Marker { position: 0x200, fpduptr: 0x14 };
        assert!(layout.pieces().any(|piece| piece == marker));
        assert_eq!(layout.end - layout.start, 52);
    }

    /// A marker due between PAD and CRC belongs to the FPDU; one due right after the CRC to the
    /// next (RFC 5044 4.3).
    #[test]
    fn markers_at_the_end() {
        let between = Layout::new(488, 19, Some(0));
        assert_eq!((between.crc, between.end, between.marker_count()), (516, 520, 1));
        let before_marker = Layout::new(484, 19, Some(0));
        assert_eq!((before_marker.end, before_marker.marker_count()), (512, 0));
        assert!(Layout::new(512, 19, Some(0)).has_leading_marker());
    }

    /// 1442 octets at EMSS 1460: 1460 octets in all, markers at 0, 512 and 1024.
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
        /// The closed formula agrees with walking octet by octet, as RFC 5044 4.3 words it.
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
