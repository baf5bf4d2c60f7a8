//! Data of the hooks of FPDUs.

use weft_core::crc;
use weft_core::wire::mpa::fpdu::{Piece, pad_len};
use weft_core::wire::mpa::{Framing, Layout};

/// An FPDU that is about to be sent. A hook changes `octets`.
pub(crate) struct SentFpdu<'a> {
    pub(in crate::hostile) position: u64,
    pub(in crate::hostile) ulpdu: &'a [u8],
    pub(in crate::hostile) framing: Framing,
    pub(in crate::hostile) octets: Vec<u8>,
}

impl<'a> SentFpdu<'a> {
    /// Creates the correct FPDU for a ULPDU. The ULPDU can have any length that `ULPDU_Length` can
    /// express.
    pub(in crate::hostile) fn right(position: u64, ulpdu: &'a [u8], framing: Framing) -> Self {
        let mut fpdu = SentFpdu { position, ulpdu, framing, octets: Vec::new() };
        fpdu.octets = fpdu.compose(ulpdu, framing.phase(), right_marker, 0);
        fpdu
    }

    pub(in crate::hostile) fn layout(&self) -> Layout {
        Layout::new(self.position, u16::try_from(self.ulpdu.len()).unwrap_or(u16::MAX), self.framing.phase())
    }

    /// Composes an FPDU with a correct CRC. `phase` is the marker phase (`None`: no markers),
    /// `marker` encodes a marker from FPDUPTR, and `pad` is the value of each PAD byte.
    pub(in crate::hostile) fn compose(
        &self,
        ulpdu: &[u8],
        phase: Option<u16>,
        marker: fn([u8; 2]) -> [u8; 4],
        pad: u8,
    ) -> Vec<u8> {
        let length = u16::try_from(ulpdu.len()).unwrap_or(u16::MAX);
        let layout = Layout::new(self.position, length, phase);
        let mut body = [&length.to_be_bytes()[..], ulpdu, &[pad; 3][..pad_len(length)]].concat().into_iter();
        let mut octets = Vec::new();
        for piece in layout.pieces() {
            match piece {
                Piece::Body(stretch) => {
                    let wanted = usize::try_from(stretch.end - stretch.start).unwrap_or(usize::MAX);
                    octets.extend(body.by_ref().take(wanted));
                }
                Piece::Marker { fpduptr, .. } => octets.extend(marker(fpduptr.to_be_bytes())),
            }
        }
        let value = if self.framing.crc { crc::crc32c(&octets) } else { 0 };
        octets.extend(crc::to_octets(value));
        octets
    }

    /// Composes the FPDU again with other markers. If no markers are used, nothing changes.
    pub(in crate::hostile) fn mark(&mut self, marker: fn([u8; 2]) -> [u8; 4]) {
        self.octets = self.compose(self.ulpdu, self.framing.phase(), marker, 0);
    }

    /// Returns whether this is the first FPDU of the stream.
    pub(in crate::hostile) fn begins_stream(&self) -> bool {
        self.position == 0
    }

    /// Computes the CRC over `covered` and stores it in the CRC field.
    pub(in crate::hostile) fn set_crc(&mut self, covered: &[u8]) {
        let value = if self.framing.crc { crc::crc32c(covered) } else { 0 };
        let at = self.octets.len().saturating_sub(4);
        self.octets.truncate(at);
        self.octets.extend(crc::to_octets(value));
    }

    /// Changes the bytes before the CRC field, and stores the matching CRC.
    pub(in crate::hostile) fn change(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let at = self.octets.len().saturating_sub(4);
        self.octets.truncate(at);
        change(&mut self.octets);
        let covered = self.octets.clone();
        self.octets.extend([0; 4]);
        self.set_crc(&covered);
    }

    /// Returns the offset of `ULPDU_Length` in the FPDU, in bytes.
    pub(in crate::hostile) fn header(&self) -> usize {
        let layout = self.layout();
        usize::try_from(layout.header - layout.start).unwrap_or(0)
    }

    /// Stores a CRC that does not cover some markers. `left_out` selects these markers by their
    /// stream position.
    pub(in crate::hostile) fn leave_out_of_crc(&mut self, left_out: impl Fn(&Layout, u64) -> bool) {
        let layout = self.layout();
        let mut covered = Vec::new();
        let mut at = 0;
        for piece in layout.pieces() {
            let length = match &piece {
                Piece::Body(stretch) => usize::try_from(stretch.end - stretch.start).unwrap_or(0),
                Piece::Marker { .. } => 4,
            };
            let out = matches!(piece, Piece::Marker { position, .. } if left_out(&layout, position));
            if !out {
                covered.extend_from_slice(self.octets.get(at..at + length).unwrap_or_default());
            }
            at += length;
        }
        self.set_crc(&covered);
    }

    /// Changes the length of PAD. `length` converts the correct length to the new length.
    pub(in crate::hostile) fn resize_pad(&mut self, length: impl FnOnce(usize) -> usize) {
        let pad = pad_len(self.layout().ulpdu_length);
        self.change(|octets| {
            octets.truncate(octets.len() - pad);
            octets.resize(octets.len() + length(pad), 0);
        });
    }
}

pub(in crate::hostile) fn right_marker([high, low]: [u8; 2]) -> [u8; 4] {
    [0, 0, high, low]
}
