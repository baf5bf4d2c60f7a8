//! Deviations in the FPDUs that are sent, in how they are framed, and in what is made of those
//! received.

use weft_core::crc;
use weft_core::wire::mpa::fpdu::{Piece, pad_len};
use weft_core::wire::mpa::{Framing, Layout};

use super::segment::{MO, SENDS, is_last, opcode, word};

/// An FPDU on its way out; its hook changes `octets`.
pub(crate) struct SentFpdu<'a> {
    position: u64,
    ulpdu: &'a [u8],
    framing: Framing,
    pub(super) octets: Vec<u8>,
}

impl<'a> SentFpdu<'a> {
    /// The right FPDU, for a ULPDU of any length that `ULPDU_Length` can express.
    pub(super) fn right(position: u64, ulpdu: &'a [u8], framing: Framing) -> Self {
        let mut fpdu = SentFpdu { position, ulpdu, framing, octets: Vec::new() };
        fpdu.octets = fpdu.compose(ulpdu, framing.phase(), right_marker, 0);
        fpdu
    }

    fn layout(&self) -> Layout {
        Layout::new(self.position, u16::try_from(self.ulpdu.len()).unwrap_or(u16::MAX), self.framing.phase())
    }

    /// An FPDU along a layout with markers in this phase, with these markers and PAD octets, and a
    /// CRC over all of it.
    fn compose(&self, ulpdu: &[u8], phase: Option<u16>, marker: fn([u8; 2]) -> [u8; 4], pad: u8) -> Vec<u8> {
        let length = u16::try_from(ulpdu.len()).unwrap_or(u16::MAX);
        let layout = Layout::new(self.position, length, phase);
        let body = [&length.to_be_bytes()[..], ulpdu, &[pad; 3][..pad_len(length)]].concat();
        let (mut rest, mut octets) = (&body[..], Vec::new());
        for piece in layout.pieces() {
            match piece {
                Piece::Body(stretch) => {
                    let wanted = usize::try_from(stretch.end - stretch.start).unwrap_or(usize::MAX);
                    let (now, later) = rest.split_at(wanted.min(rest.len()));
                    octets.extend_from_slice(now);
                    rest = later;
                }
                Piece::Marker { fpduptr, .. } => octets.extend(marker(fpduptr.to_be_bytes())),
            }
        }
        let value = if self.framing.crc { crc::crc32c(&octets) } else { 0 };
        octets.extend(crc::to_octets(value));
        octets
    }

    /// The same with other markers; without markers it stays as it is.
    fn mark(&mut self, marker: fn([u8; 2]) -> [u8; 4]) {
        self.octets = self.compose(self.ulpdu, self.framing.phase(), marker, 0);
    }

    /// Is it the first one?
    pub(super) fn begins_stream(&self) -> bool {
        self.position == 0
    }

    /// Puts the CRC of these octets into the CRC field.
    fn seal(&mut self, covered: &[u8]) {
        let value = if self.framing.crc { crc::crc32c(covered) } else { 0 };
        let at = self.octets.len().saturating_sub(4);
        self.octets.truncate(at);
        self.octets.extend(crc::to_octets(value));
    }

    /// Changes the octets before the CRC field, and gives them the CRC that fits.
    fn change(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let at = self.octets.len().saturating_sub(4);
        self.octets.truncate(at);
        change(&mut self.octets);
        let covered = self.octets.clone();
        self.octets.extend([0; 4]);
        self.seal(&covered);
    }

    /// Offset of `ULPDU_Length`.
    fn header(&self) -> usize {
        let layout = self.layout();
        usize::try_from(layout.header - layout.start).unwrap_or(0)
    }

    /// Its octets before the CRC field, without markers that `left_out` names by their place in it.
    fn without_markers(&self, left_out: impl Fn(&Layout, u64) -> bool) -> Vec<u8> {
        let layout = self.layout();
        let mut octets = Vec::new();
        let mut at = 0;
        for piece in layout.pieces() {
            let length = match &piece {
                Piece::Body(stretch) => usize::try_from(stretch.end - stretch.start).unwrap_or(0),
                Piece::Marker { .. } => 4,
            };
            let out = matches!(piece, Piece::Marker { position, .. } if left_out(&layout, position));
            if !out {
                octets.extend_from_slice(self.octets.get(at..at + length).unwrap_or_default());
            }
            at += length;
        }
        octets
    }
}

fn is_short_send(octets: &[u8]) -> bool {
    SENDS.contains(&opcode(octets)) && is_last(octets) && word(octets, MO) == 0 && octets.len() < 100
}

fn right_marker([high, low]: [u8; 2]) -> [u8; 4] {
    [0, 0, high, low]
}

deviations! {
    "mpa.accepts-bad-crc" [Framing(|_, received| received.crc = false)]
        ["MPA-8-2", "MPA-4.4-10", "MPA-4.4-19", "MPA-4.4-20", "MPA-6-1", "MPA-6-3", "MPA-4.4-6", "MPA-6-6"]
        "does not check the CRCs of received FPDUs, whatever was negotiated";
    "mpa.checks-unused-crc" [Framing(|_, received| received.crc = true)]
        ["MPA-7.1.1-10", "MPA-7.1.1-14", "MPA-4.1-7", "MPA-4.4-11"]
        "checks the CRCs of received FPDUs although both sides have C=0";
    "mpa.coalesces-sends" [Segment(|sent| if let Some(octets) = sent.out.first().cloned() && is_short_send(&octets) {
        match sent.kept.held.pop() {
            None => sent.kept.held.append(&mut sent.out),
            Some(first) => sent.out = vec![[first, octets].concat()],
        }
    })] ["MPA-3-7", "MPA-B.1-1", "DDP-4.3-6"] "sends two short Sends in one FPDU";
    "mpa.count-with-header" [Fpdu(|fpdu| {
        let at = fpdu.header();
        let length = u16::try_from(fpdu.ulpdu.len()).unwrap_or(u16::MAX).wrapping_add(2).to_be_bytes();
        fpdu.change(|octets| octets[at..at + 2].copy_from_slice(&length));
    })] ["MPA-4.1-2", "MPA-4.1-1"] "counts the two bytes of ULPDU_Length in ULPDU_Length";
    "mpa.crc-byte-order" [Fpdu(|fpdu| {
        let at = fpdu.octets.len() - 4;
        fpdu.octets[at..].reverse();
    })] ["MPA-4.4-18", "MPA-4.1-6", "MPA-4.4-14", "MPA-4.4-1"] "sends the CRC field in the wrong byte order, most significant byte first";
    "mpa.crc-flipped" [Fpdu(|fpdu| {
        let at = fpdu.octets.len() - 1;
        fpdu.octets[at] ^= 1;
    })] ["MPA-4.1-6", "MPA-4.4-14", "MPA-4.4-1", "MPA-4.4-9", "MPA-7.1.1-12"] "sends a CRC field with one wrong bit";
    "mpa.crc-left-out" [Fpdu(|fpdu| fpdu.octets.truncate(fpdu.octets.len() - 4))]
        ["MPA-4.4-13", "MPA-4.1-8", "MPA-7.1.1-13", "MPA-4.1-1", "MPA-4.1-9"] "does not send the CRC field";
    "mpa.crc-of-payload" [Fpdu(|fpdu| {
        let from = fpdu.header() + 2;
        let covered = fpdu.octets[from..fpdu.octets.len() - 4].to_vec();
        fpdu.seal(&covered);
    })] ["MPA-4.4-15", "MPA-4.1-6"] "computes the CRC without ULPDU_Length";
    "mpa.crc-of-terminate-byte-order" [Fpdu(|fpdu| if fpdu.ulpdu.get(1).is_some_and(|octet| octet & 0xf == 7) {
        let at = fpdu.octets.len() - 4;
        fpdu.octets[at..].reverse();
    })] ["MPA-4.4-18", "MPA-4.1-6"] "sends the CRC field of a Terminate in the wrong byte order, most significant byte first";
    "mpa.crc-unused-left-out" [Fpdu(|fpdu| if !fpdu.framing.crc { fpdu.octets.truncate(fpdu.octets.len() - 4) })]
        ["MPA-4.1-9", "MPA-4.4-13", "MPA-4.1-8", "MPA-7.1.1-13"] "does not send the CRC field if both sides have C=0";
    "mpa.crc-without-leading-marker" [Fpdu(|fpdu| {
        let covered = fpdu.without_markers(|layout, position| position < layout.header);
        fpdu.seal(&covered);
    })] ["MPA-4.4-17", "MPA-4.3-8", "MPA-4.4-21"] "computes the CRC without the marker before ULPDU_Length";
    "mpa.crc-without-markers" [Fpdu(|fpdu| {
        let covered = fpdu.without_markers(|_, _| true);
        fpdu.seal(&covered);
    })] ["MPA-4.3-1", "MPA-4.4-15", "MPA-4.4-22"] "computes the CRC without the markers";
    "mpa.crc-without-trailing-marker" [Fpdu(|fpdu| {
        let covered = fpdu.without_markers(|layout, position| position + 4 == layout.crc);
        fpdu.seal(&covered);
    })] ["MPA-4.4-16"] "computes the CRC without a marker between PAD and the CRC field";
    "mpa.crc-zero" [Framing(|sent, _| sent.crc = false)]
        ["MPA-7.1.1-12", "MPA-4.4-9", "MPA-4.1-6", "MPA-4.4-14", "MPA-4.4-1", "DDP-3-7"]
        "sends zero in the CRC field, whatever was negotiated";
    "mpa.first-marker-left-out" [Fpdu(|fpdu| if fpdu.begins_stream() && fpdu.framing.markers {
        fpdu.change(|octets| drop(octets.drain(..4)));
    })] ["MPA-7.1.1-6", "MPA-4.3-10", "MPA-4.3-12"] "omits the marker before the first FPDU";
    "mpa.length-byte-order" [Fpdu(|fpdu| {
        let at = fpdu.header();
        fpdu.change(|octets| octets[at..at + 2].reverse());
    })] ["MPA-4.1-1"] "sends ULPDU_Length in little-endian byte order";
    "mpa.marker-fields-swapped" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [high, low, 0, 0]))]
        ["MPA-4.2-1", "MPA-4.2-2", "MPA-4.2-4"] "sends markers with FPDUPTR before the reserved half";
    "mpa.marker-from-zero" [Fpdu(|fpdu| {
        fpdu.mark(|pointer| match u16::from_be_bytes(pointer) {
            0 => [0, 0, 0, 4],
            _ => right_marker(pointer),
        });
    })] ["MPA-4.3-11", "MPA-4.3-15", "MPA-4.3-7", "MPA-4.3-10"]
        "sends FPDUPTR 4 in markers between two FPDUs and in the first marker";
    "mpa.marker-little-endian" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [0, 0, low, high]))]
        ["MPA-4.2-1", "MPA-4.2-4", "MPA-4.3-5", "MPA-4.3-14"] "sends FPDUPTR in little-endian byte order";
    "mpa.marker-low-bits" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [0, 0, high, low | 3]))]
        ["MPA-4.2-5"] "sets the two low bits of FPDUPTR";
    "mpa.marker-modulo" [Fpdu(|fpdu| {
        fpdu.mark(|pointer| if u16::from_be_bytes(pointer) > 512 { [0, 0, 2, 0] } else { right_marker(pointer) });
    })] ["MPA-4.3-13", "MPA-4.3-5", "MPA-4.2-4"] "points a second marker of an FPDU to the previous marker instead of the FPDU";
    "mpa.marker-off-by-four" [Fpdu(|fpdu| {
        fpdu.mark(|pointer| match u16::from_be_bytes(pointer) {
            0 => [0; 4],
            right => {
                let [high, low] = right.wrapping_add(4).to_be_bytes();
                [0, 0, high, low]
            }
        });
    })] ["MPA-4.2-4", "MPA-4.3-5", "MPA-4.3-14", "MPA-4.3-16"] "counts the marker itself in FPDUPTR";
    "mpa.marker-reserved" [Fpdu(|fpdu| fpdu.mark(|[high, low]| [0xff, 0xff, high, low]))]
        ["MPA-4.2-2"] "sends markers whose reserved half is not zero";
    "mpa.markers-left-out" [Framing(|sent, _| sent.markers = false)]
        ["MPA-7.1.1-9", "MPA-4.3-3", "MPA-7.1.1-6", "MPA-7.1.1-7", "MPA-4.3-10", "MPA-7.1.2-21", "MPA-C.2-2", "MPA-C.3-1"]
        "sends no markers although the peer has M=1";
    "mpa.markers-out-of-phase" [Fpdu(|fpdu| {
        if fpdu.framing.markers {
            fpdu.octets = fpdu.compose(fpdu.ulpdu, Some(256), right_marker, 0);
        }
    })] ["MPA-4.3-12", "MPA-4.3-10", "MPA-4.3-4", "MPA-2-3"] "sends the first marker 256 bytes after the start of the stream";
    "mpa.markers-unasked" [Framing(|sent, _| sent.markers = true)]
        ["MPA-7.1.1-8", "MPA-1.2-5", "MPA-7.1.2-21"] "sends markers although the peer has M=0";
    "mpa.mulpdu-below-128" [Mulpdu(|mulpdu| *mulpdu = 100)]
        ["MPA-4.5-8", "MPA-3-3", "MPA-4.5-6"] "splits messages into ULPDUs of 100 bytes";
    "mpa.mulpdu-beyond-64768" [Mulpdu(|mulpdu| *mulpdu = 65_000), Fpdu(|_| ())]
        ["MPA-3-4", "MPA-3-3", "MPA-3-2", "MPA-3-8", "MPA-4.5-2", "MPA-4.5-3"] "splits messages into ULPDUs of 65,000 bytes";
    "mpa.mulpdu-without-crc" [Mulpdu(|mulpdu| *mulpdu = mulpdu.saturating_add(4))]
        ["MPA-4.5-3", "MPA-4.5-2", "MPA-3-8", "MPA-4.5-1", "MPA-3-2", "MPA-5.1-1"]
        "sends ULPDUs four bytes longer than MULPDU, without room for the CRC";
    "mpa.pad-left-out" [Fpdu(|fpdu| {
        let pad = pad_len(u16::try_from(fpdu.ulpdu.len()).unwrap_or(u16::MAX));
        fpdu.change(|octets| octets.truncate(octets.len() - pad));
    })] ["MPA-4.1-5", "MPA-2-5", "MPA-4.1-1"] "sends FPDUs without PAD";
    "mpa.pad-left-out-later" [Fpdu(|fpdu| if !fpdu.begins_stream() {
        let pad = pad_len(u16::try_from(fpdu.ulpdu.len()).unwrap_or(u16::MAX));
        fpdu.change(|octets| octets.truncate(octets.len() - pad));
    })] ["MPA-4.1-5", "MPA-2-5", "MPA-4.1-1"] "sends PAD only in the first FPDU";
    "mpa.pad-not-zero" [Fpdu(|fpdu| {
        fpdu.octets = fpdu.compose(fpdu.ulpdu, fpdu.framing.phase(), right_marker, 0xff);
    })] ["MPA-4.1-3", "MPA-2-5"] "sends 0xff in the bytes of PAD";
    "mpa.pad-of-ulpdu" [Fpdu(|fpdu| {
        let pad = pad_len(u16::try_from(fpdu.ulpdu.len()).unwrap_or(u16::MAX));
        fpdu.change(|octets| {
            octets.truncate(octets.len() - pad);
            octets.resize(octets.len() + (pad + 2) % 4, 0);
        });
    })] ["MPA-4.1-5", "MPA-4.1-6"] "pads the ULPDU to a multiple of four bytes, not the FPDU";
    "mpa.refuses-marker-bits" [Refuses(|fpdu| fpdu.markers().any(|marker| marker.fpduptr & 3 != 0))]
        ["MPA-4.2-6", "MPA-4.3-9"] "rejects a marker with low bits of FPDUPTR set";
    "mpa.refuses-marker-reserved" [Refuses(|fpdu| fpdu.markers().any(|marker| marker.reserved != 0))]
        ["MPA-4.2-3"] "rejects a marker whose reserved half is not zero";
    "mpa.refuses-pad" [Refuses(|fpdu| fpdu.pad().flatten().any(|octet| *octet != 0))]
        ["MPA-4.1-4"] "rejects an FPDU whose PAD is not zero";
    "mpa.refuses-short-ulpdu" [Refuses(|fpdu| fpdu.layout().ulpdu_length < 20)]
        ["MPA-3-5"] "rejects an FPDU with a ULPDU of less than 20 bytes";
    "mpa.refuses-ulpdu-over-127" [Refuses(|fpdu| fpdu.layout().ulpdu_length > 127)]
        ["MPA-5.2-1"] "rejects an FPDU whose ULPDU_Length needs more than seven bits";
    "mpa.two-ulpdus" [Fpdu(|fpdu| {
        let twice = [fpdu.ulpdu, fpdu.ulpdu].concat();
        if fpdu.ulpdu.len() <= 64 {
            fpdu.octets = fpdu.compose(&twice, fpdu.framing.phase(), right_marker, 0);
        }
    })] ["MPA-3-7", "MPA-B.1-1"] "sends a short ULPDU twice in its FPDU";
}
