//! Writes one FPDU.

use super::{Layout, MAX_ULPDU, Piece, pad_len};
use crate::error::{Found, Layer, WireError};
use crate::requirement;
use crate::{crc, marker};

/// The negotiated settings of one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Framing {
    /// Whether this direction has markers.
    pub markers: bool,
    /// Whether the CRC field contains a CRC. If not, the field is present, but it is zero
    /// (MPA-4.4-13).
    pub crc: bool,
}

impl Framing {
    /// The phase of a [`Layout`] in this direction: 0 with markers, `None` without markers.
    #[must_use]
    pub const fn phase(self) -> Option<u16> {
        if self.markers { Some(0) } else { None }
    }
}

/// Appends one FPDU to `out` and returns its layout. The ULPDU is the concatenation of the slices
/// in `ulpdu`.
///
/// `position` is the stream position of the first octet of the FPDU. Position 0 is the first octet
/// after the start-up frame of the sender. If a marker is due at `position`, the FPDU starts with
/// the marker. A marker that is due directly after the FPDU belongs to the next FPDU.
///
/// # Errors
/// The ULPDU has more than 64768 octets (MPA-3-4). In this case `out` is unchanged. To send such an
/// illegal FPDU, write its parts at the positions of a [`Layout`].
pub fn emit(position: u64, ulpdu: &[&[u8]], framing: Framing, out: &mut Vec<u8>) -> Result<Layout, WireError> {
    let octets = ulpdu.iter().fold(0, |sum: usize, slice| sum.saturating_add(slice.len()));
    let length = u16::try_from(octets).ok().filter(|length| *length <= MAX_ULPDU).ok_or(WireError {
        layer: Layer::Mpa,
        field: "ULPDU_Length",
        offset: 0,
        expected: "at most 64768 octets of ULPDU",
        found: Found::Octets(octets),
        requirement: Some(requirement!("MPA-3-4")),
    })?;
    let layout = Layout::new(position, length, framing.phase());
    let from = out.len();
    out.reserve(usize::try_from(layout.end - layout.start).unwrap_or(0));

    let head = length.to_be_bytes();
    let mut body = Gather {
        slices: [&head[..]].into_iter().chain(ulpdu.iter().copied()).chain([&[0; 3][..pad_len(length)]]),
        rest: &[],
    };
    for piece in layout.pieces() {
        match piece {
            Piece::Body(stretch) => body.copy(stretch.end - stretch.start, out),
            Piece::Marker { fpduptr, .. } => out.extend_from_slice(&marker::to_octets(fpduptr)),
        }
    }
    let value = if framing.crc { crc::crc32c(&out[from..]) } else { 0 };
    out.extend_from_slice(&crc::to_octets(value));
    Ok(layout)
}

/// Reads several slices as one sequence of octets.
struct Gather<'a, I> {
    slices: I,
    rest: &'a [u8],
}

impl<'a, I: Iterator<Item = &'a [u8]>> Gather<'a, I> {
    fn copy(&mut self, octets: u64, out: &mut Vec<u8>) {
        let mut octets = usize::try_from(octets).unwrap_or(usize::MAX);
        while octets > 0 {
            if self.rest.is_empty() {
                let Some(next) = self.slices.next() else { return };
                self.rest = next;
            }
            let (now, later) = self.rest.split_at(octets.min(self.rest.len()));
            out.extend_from_slice(now);
            self.rest = later;
            octets -= now.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_64768_octets_are_refused() {
        let octets = vec![0; 64_769];
        let mut out = vec![7];
        let error = emit(0, &[&octets], Framing { markers: false, crc: true }, &mut out).unwrap_err();
        assert_eq!((error.requirement, error.found), (Some(requirement!("MPA-3-4")), Found::Octets(64_769)));
        assert_eq!(out, [7]);
        let layout = emit(0, &[&octets[..64_768]], Framing { markers: false, crc: true }, &mut out).unwrap();
        assert_eq!(out.len() as u64, 1 + layout.end);
    }

    /// MPA-4.4-13 requires a CRC field even if CRCs are not in use.
    #[test]
    fn without_crc_the_field_is_zero() {
        let mut out = Vec::new();
        let layout = emit(8, &[b"ab", b"", b"c"], Framing { markers: false, crc: false }, &mut out).unwrap();
        assert_eq!(out, b"\x00\x03abc\0\0\0\0\0\0\0");
        assert_eq!((layout.start, layout.end), (8, 20));
    }
}
