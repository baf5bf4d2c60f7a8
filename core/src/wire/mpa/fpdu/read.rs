//! Reads one FPDU without copying it.

use std::ops::Range;

use super::{LENGTH_LEN, Layout, Piece, pad_len};
use crate::crc::{self, CRC_LEN};
use crate::error::{Found, Layer, WireError};
use crate::marker::MARKER_LEN;
use crate::requirement;

/// The octets of one complete FPDU, with the positions of its parts. [`Fpdu::check_crc`] and
/// [`Fpdu::check_markers`] check its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fpdu<'a> {
    octets: &'a [u8],
    layout: Layout,
}

/// A received marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Offset in octets of the marker from the start of the FPDU.
    pub offset: usize,
    /// Received value of RESERVED.
    pub reserved: u16,
    /// Received value of FPDUPTR.
    pub fpduptr: u16,
    /// Correct value of FPDUPTR.
    pub expected: u16,
}

impl<'a> Fpdu<'a> {
    /// Combines `octets` with their `layout`. The first octet has the position `layout.start`.
    ///
    /// # Errors
    /// The number of octets differs from the length of the layout.
    pub fn new(octets: &'a [u8], layout: Layout) -> Result<Self, WireError> {
        if usize::try_from(layout.end - layout.start) == Ok(octets.len()) {
            return Ok(Fpdu { octets, layout });
        }
        Err(WireError::too_short(Layer::Mpa, "FPDU", "the number of octets that ULPDU_Length gives", octets.len()))
    }

    /// The layout that was passed to [`Fpdu::new`].
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The received CRC32c as a number; `None` if the layout has no CRC field.
    #[must_use]
    pub fn crc_field(&self) -> Option<u32> {
        self.octets.get(self.crc_offset()..)?.first_chunk::<CRC_LEN>().map(|field| crc::from_octets(*field))
    }

    /// The CRC32c of all octets before the CRC field, markers included.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        crc::crc32c(self.octets.get(..self.crc_offset()).unwrap_or(self.octets))
    }

    /// Compares the CRC field with the computed CRC.
    ///
    /// # Errors
    /// The CRC field differs from the computed CRC, or the layout has no CRC field.
    pub fn check_crc(&self) -> Result<(), WireError> {
        let field = self.crc_field();
        if field == Some(self.computed_crc()) {
            return Ok(());
        }
        Err(WireError {
            layer: Layer::Mpa,
            field: "CRC",
            offset: self.crc_offset(),
            expected: "the CRC32c of the FPDU",
            found: field.map_or(Found::Octets(0), |value| Found::Value(u64::from(value))),
            requirement: Some(requirement!("MPA-4.4-14")),
        })
    }

    /// The markers that belong to the FPDU, in stream order.
    pub fn markers(&self) -> impl Iterator<Item = Marker> + use<'a> {
        let (octets, start) = (self.octets, self.layout.start);
        self.layout.pieces().filter_map(move |piece| {
            let Piece::Marker { position, fpduptr: expected } = piece else { return None };
            let offset = usize::try_from(position - start).ok()?;
            let [a, b, c, d] = *octets.get(offset..)?.first_chunk::<MARKER_LEN>()?;
            Some(Marker { offset, reserved: u16::from_be_bytes([a, b]), fpduptr: u16::from_be_bytes([c, d]), expected })
        })
    }

    /// Checks FPDUPTR of each marker. Treats the two low bits of FPDUPTR as zero (MPA-4.3-9).
    /// RESERVED is not checked.
    ///
    /// # Errors
    /// A marker does not point to `ULPDU_Length`. The error describes the first such marker.
    pub fn check_markers(&self) -> Result<(), WireError> {
        let Some(wrong) = self.markers().find(|marker| marker.fpduptr & !3 != marker.expected) else { return Ok(()) };
        Err(WireError {
            layer: Layer::Mpa,
            field: "FPDUPTR",
            offset: wrong.offset + 2,
            expected: "the distance back to ULPDU_Length",
            found: Found::Value(u64::from(wrong.fpduptr)),
            requirement: Some(requirement!("MPA-4.3-5")),
        })
    }

    /// The ULPDU as slices between markers, in order. Together the slices have `ulpdu_length`
    /// octets.
    pub fn ulpdu(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.body(LENGTH_LEN..LENGTH_LEN + usize::from(self.layout.ulpdu_length))
    }

    /// PAD as slices between markers. Together the slices have 0 to 3 octets.
    pub fn pad(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let from = LENGTH_LEN + usize::from(self.layout.ulpdu_length);
        self.body(from..from + pad_len(self.layout.ulpdu_length))
    }

    /// The slices between markers that contain the octet range `wanted`. Offset 0 is the start of
    /// the length field. The ULPDU and PAD follow. The offsets do not count markers.
    fn body(&self, wanted: Range<usize>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (octets, start) = (self.octets, self.layout.start);
        let mut at = 0;
        self.layout.pieces().filter_map(move |piece| {
            let Piece::Body(stretch) = piece else { return None };
            let offset = usize::try_from(stretch.start - start).ok()?;
            let length = usize::try_from(stretch.end - stretch.start).ok()?;
            let (from, to) = (wanted.start.max(at), wanted.end.min(at + length));
            let begin = offset + from.saturating_sub(at);
            at += length;
            if from < to { octets.get(begin..begin + (to - from)) } else { None }
        })
    }

    fn crc_offset(&self) -> usize {
        usize::try_from(self.layout.crc - self.layout.start).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Framing, emit};
    use super::*;
    use proptest::prelude::*;

    /// The FPDU of RFC 5044 Figure 6. It is at 0x1EC and has a marker after 20 octets.
    const FIGURE_6: &[u8; 52] = b"\x00\x2a\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x14\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x84\x92\x58\x98";

    #[test]
    fn figure_6_is_read_around_its_marker() {
        let fpdu = Fpdu::new(FIGURE_6, Layout::new(0x1ec, 42, Some(0))).unwrap();
        assert_eq!(fpdu.check_crc(), Ok(()));
        assert_eq!(fpdu.check_markers(), Ok(()));
        assert_eq!(fpdu.crc_field(), Some(0x9858_9284));
        let marker = Marker { offset: 20, reserved: 0, fpduptr: 0x14, expected: 0x14 };
        assert_eq!(fpdu.markers().collect::<Vec<_>>(), [marker]);
        assert_eq!(fpdu.ulpdu().collect::<Vec<_>>(), [&FIGURE_6[2..20], &FIGURE_6[24..48]]);
        assert_eq!(fpdu.pad().count(), 0);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let layout = Layout::new(0x1ec, 42, Some(0));
        assert_eq!(Fpdu::new(&FIGURE_6[..51], layout).unwrap_err().found, Found::Octets(51));
        let mut octets = *FIGURE_6;
        octets[23] ^= 4;
        let fpdu = Fpdu::new(&octets, layout).unwrap();
        let error = fpdu.check_markers().unwrap_err();
        assert_eq!((error.offset, error.found), (22, Found::Value(0x10)));
        let error = fpdu.check_crc().unwrap_err();
        assert_eq!((error.offset, error.requirement), (48, Some(requirement!("MPA-4.4-14"))));
        // The two low bits of FPDUPTR count as zero.
        octets[23] = 0x17;
        assert_eq!(Fpdu::new(&octets, layout).unwrap().check_markers(), Ok(()));
        // If the layout has no CRC field, there is no CRC to compare.
        let fpdu = Fpdu::new(&FIGURE_6[..48], layout.without_crc_field()).unwrap();
        assert_eq!((fpdu.crc_field(), fpdu.check_crc().unwrap_err().found), (None, Found::Octets(0)));
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(
            start in 0u64..300, slices in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..700), 0..4),
            markers: bool, crc: bool,
        ) {
            let ulpdu: Vec<&[u8]> = slices.iter().map(Vec::as_slice).collect();
            let framing = Framing { markers, crc };
            let mut out = Vec::new();
            let layout = emit(start * 4, &ulpdu, framing, &mut out).unwrap();
            let fpdu = Fpdu::new(&out, layout).unwrap();
            prop_assert_eq!(fpdu.ulpdu().collect::<Vec<_>>().concat(), slices.concat());
            prop_assert_eq!(usize::from(layout.ulpdu_length), slices.concat().len());
            prop_assert!(fpdu.pad().all(|pad| pad.iter().all(|octet| *octet == 0)));
            prop_assert_eq!(fpdu.pad().map(<[u8]>::len).sum::<usize>(), pad_len(layout.ulpdu_length));
            prop_assert_eq!(fpdu.check_markers(), Ok(()));
            prop_assert_eq!(fpdu.markers().count(), layout.marker_count());
            if crc {
                prop_assert_eq!(fpdu.check_crc(), Ok(()));
            } else {
                prop_assert_eq!(fpdu.crc_field(), Some(0));
            }
        }

        /// Tests any octets with any layout of the same length. The marker phase can be invalid.
        #[test]
        fn no_octets_panic(
            fill in proptest::collection::vec(any::<u8>(), 1..50), ulpdu_length in 0u16..1200, start: u16,
            phase in proptest::option::of(0u16..512), cut: bool,
        ) {
            let mut layout = Layout::new(u64::from(start), ulpdu_length, phase);
            if cut {
                layout = layout.without_crc_field();
            }
            let length = usize::try_from(layout.end - layout.start).unwrap();
            let octets: Vec<u8> = fill.into_iter().cycle().take(length).collect();
            let fpdu = Fpdu::new(&octets, layout).unwrap();
            let _ = (fpdu.check_crc(), fpdu.check_markers());
            prop_assert_eq!(fpdu.crc_field().is_none(), cut);
            prop_assert_eq!(fpdu.ulpdu().map(<[u8]>::len).sum::<usize>(), usize::from(ulpdu_length));
        }
    }
}
