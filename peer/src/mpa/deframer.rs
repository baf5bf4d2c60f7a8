//! Finds the FPDUs in a TCP stream and checks their CRCs and markers (RFC 5044 sections 4, 5.2, 8).
//! TCP can split the stream at any position.
//!
//! Only `ULPDU_Length` determines where an FPDU ends (MPA-5.2-1). If the input contains a complete
//! FPDU, the deframer reads the FPDU in place. If this FPDU has no markers, the deframer returns
//! the ULPDU as a slice of the input, without a copy. If an FPDU is split, the deframer collects
//! the pieces in a buffer of at most one FPDU (66,064 bytes with markers). To remove markers, it
//! copies the ULPDU into a second buffer of at most one ULPDU.
//!
//! The deframer checks the CRC before the markers, because the CRC also covers the markers. If the
//! CRC is correct and a marker is wrong, the sender caused the fault, not the network (MPA error
//! 3).

use weft_core::crc::{self, CRC_LEN};
use weft_core::wire::mpa::fpdu::{self, Fpdu, Framing, LENGTH_LEN, Layout};

use super::{FpduError, fill};
use crate::hostile::{self, Deviations};

/// Greatest capacity in bytes that each buffer keeps between FPDUs. An FPDU of one Ethernet frame
/// fits into this capacity.
const KEPT: usize = 2048;

/// Deframer of the FPDUs of one direction.
#[derive(Debug)]
pub struct Deframer {
    framing: Framing,
    /// The arrived bytes of an incomplete FPDU. While `returned` is true, this buffer contains the
    /// split FPDU that [`next`](Self::next) returned last.
    partial: Vec<u8>,
    returned: bool,
    /// Position of the next FPDU: the number of stream bytes before this FPDU.
    position: u64,
    /// The ULPDU that was returned last, if markers were removed from this ULPDU.
    ulpdu: Vec<u8>,
    deviations: Deviations,
    /// Number of bytes that were missing when the last FPDU was returned. [`next`](Self::next)
    /// drops these bytes when they arrive. Always 0 without deviations.
    skip: usize,
}

impl Deframer {
    /// Creates a deframer. Its input starts with the first byte after the peer's start-up frame.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Deframer::deviating(framing, Deviations::NONE)
    }

    /// Creates a deframer with deliberate protocol violations (`deviations`).
    #[must_use]
    pub fn deviating(framing: Framing, deviations: Deviations) -> Self {
        Deframer { framing, partial: Vec::new(), returned: false, position: 0, ulpdu: Vec::new(), deviations, skip: 0 }
    }

    /// Returns the next ULPDU and removes its FPDU from the front of `input`. Returns `None` if
    /// `input` ends before the next FPDU is complete. In this case, all of `input` is consumed.
    ///
    /// # Errors
    /// The FPDU has a wrong CRC or a wrong marker. The caller must not call `next` again, because
    /// all bytes of the stream after this FPDU are unreliable (MPA-8-13).
    pub fn next<'a, 'input: 'a>(&'a mut self, input: &mut &'input [u8]) -> Option<Result<&'a [u8], FpduError>> {
        if self.returned {
            self.partial.clear();
            self.returned = false;
        }
        if self.skip > 0 {
            let (late, rest) = input.split_at(self.skip.min(input.len()));
            self.skip -= late.len();
            *input = rest;
        }
        let head_len = self.head_len();
        if self.partial.is_empty()
            && let Some(layout) = self.layout(input, head_len)
            && let Some((fpdu, rest)) = input.split_at_checked(len(&layout))
        {
            *input = rest;
            self.position = layout.end;
            return Some(check_fpdu(fpdu, layout, self.framing, &self.deviations, &mut self.ulpdu));
        }
        if input.is_empty() && self.partial.is_empty() {
            self.release_buffers();
            return None;
        }
        fill(&mut self.partial, input, head_len);
        let layout = self.layout(&self.partial, head_len)?;
        fill(&mut self.partial, input, len(&layout));
        let mut framing = self.framing;
        if self.partial.len() < len(&layout) {
            if !self.acts_before_crc(&layout) {
                return None;
            }
            self.skip = len(&layout) - self.partial.len();
            framing.crc = false;
        }
        self.returned = true;
        self.position = layout.end;
        Some(check_fpdu(&self.partial, layout, framing, &self.deviations, &mut self.ulpdu))
    }

    /// Returns whether a deviation allows the use of an incomplete FPDU. Only bytes of the CRC
    /// field may be missing.
    fn acts_before_crc(&self, layout: &Layout) -> bool {
        self.partial.len() + CRC_LEN >= len(layout) && hostile::hook::conduct(&self.deviations).acts_before_crc
    }

    /// If only bytes of the last FPDU's CRC field are missing, checks no CRC from now on, and returns
    /// the number of these bytes. The correct endpoint does not call this function.
    pub(crate) fn ignore_missing_crc(&mut self) -> Option<usize> {
        let layout = self.layout(&self.partial, self.head_len()).filter(|_| !self.returned)?;
        let missing = len(&layout).checked_sub(self.partial.len()).filter(|missing| (1..=CRC_LEN).contains(missing))?;
        self.framing.crc = false;
        Some(missing)
    }

    /// Number of bytes up to the end of the next FPDU's `ULPDU_Length`.
    fn head_len(&self) -> usize {
        let header = fpdu::header_position(self.position, self.framing.phase()) - self.position;
        usize::try_from(header).unwrap_or(0) + LENGTH_LEN
    }

    /// Returns the ULPDU of the FPDU with a wrong CRC, if a deviation uses this ULPDU.
    pub(crate) fn damaged_ulpdu(&self) -> &[u8] {
        &self.ulpdu
    }

    /// Returns whether the buffer contains no bytes of an incomplete FPDU.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        self.returned || self.partial.is_empty()
    }

    /// Positions of the fields of the FPDU that begins with `octets`. `None` until `ULPDU_Length`
    /// has arrived. `head_len` is the number of bytes up to the end of `ULPDU_Length`.
    fn layout(&self, octets: &[u8], head_len: usize) -> Option<Layout> {
        let length = octets.get(..head_len)?.last_chunk()?;
        Some(Layout::new(self.position, u16::from_be_bytes(*length), self.framing.phase()))
    }

    /// Releases large buffers between FPDUs, because a connection can be idle for days.
    fn release_buffers(&mut self) {
        for buffer in [&mut self.partial, &mut self.ulpdu] {
            if buffer.capacity() > KEPT {
                *buffer = Vec::new();
            }
        }
    }
}

fn len(layout: &Layout) -> usize {
    usize::try_from(layout.end - layout.start).unwrap_or(usize::MAX)
}

/// Checks a complete FPDU and returns its ULPDU. If the FPDU has markers, the ULPDU is copied into
/// `joined` without the markers.
fn check_fpdu<'a>(
    octets: &'a [u8],
    layout: Layout,
    framing: Framing,
    deviations: &Deviations,
    joined: &'a mut Vec<u8>,
) -> Result<&'a [u8], FpduError> {
    if framing.crc
        && let Err(error) = check_crc(octets, layout, false)
    {
        joined.clear();
        if hostile::hook::conduct(deviations).places_bad_crc
            && let Ok(fpdu) = Fpdu::new(octets, layout)
        {
            fpdu.ulpdu().for_each(|stretch| joined.extend_from_slice(stretch));
        }
        return Err(error);
    }
    if !deviations.is_empty() && Fpdu::new(octets, layout).is_ok_and(|fpdu| hostile::hook::refuses(deviations, &fpdu)) {
        check_crc(octets, layout, true)?;
    }
    if !framing.markers {
        let mut length = usize::from(layout.ulpdu_length);
        if framing.crc && !(LENGTH_LEN + length).is_multiple_of(4) && hostile::hook::conduct(deviations).passes_trailer
        {
            length = len(&layout) - LENGTH_LEN;
        }
        return Ok(octets.get(LENGTH_LEN..LENGTH_LEN + length).unwrap_or_default());
    }
    joined.clear();
    let Ok(fpdu) = Fpdu::new(octets, layout) else { return Ok(joined) };
    // Ignore RESERVED (MPA-4.2-3) and the two low bits of FPDUPTR (MPA-4.2-6).
    if let Some(wrong) = fpdu.markers().find(|marker| marker.fpduptr & !3 != marker.expected)
        && !hostile::hook::conduct(deviations).overlooks_markers
    {
        let position = layout.start + wrong.offset as u64;
        return Err(FpduError::Marker { position, expected: wrong.expected, found: wrong.fpduptr });
    }
    fpdu.ulpdu().for_each(|stretch| joined.extend_from_slice(stretch));
    Ok(joined)
}

/// Compares the CRC field with the computed CRC. If `refuse` is true, reports every CRC as wrong.
fn check_crc(fpdu: &[u8], layout: Layout, refuse: bool) -> Result<(), FpduError> {
    let Some((covered, field)) = fpdu.split_last_chunk() else { return Ok(()) };
    let (computed, found) = (crc::crc32c(covered), crc::from_octets(*field));
    if computed == found && !refuse {
        return Ok(());
    }
    Err(FpduError::Crc { position: layout.start, computed, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A zero-length Write and a zero-length Send. An independent implementation computed their
    /// CRCs.
    const WRITE: &[u8] = b"\x00\x0e\xc1\x40\0\0\0\0\0\0\0\0\0\0\0\0\xa3\x05\x72\xab";
    const SEND: &[u8] = b"\x00\x12\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\x58\x7b\xe8\xc4";

    /// Returns a stream and its ULPDUs. The stream has the FPDUs of RFC 5044 Figures 5 and 6.
    /// Between these FPDUs is a synthetic FPDU of 440 octets.
    fn figures() -> (Vec<u8>, [Vec<u8>; 3]) {
        let header = |msn: u8| [&b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0"[..], &[msn, 0, 0, 0, 0], &[0; 24]].concat();
        let first = [&b"\0\0\0\0\x00\x2a"[..], &header(1), b"\x52\x23\x99\x83"].concat();
        let filler = [&434u16.to_be_bytes()[..], &[7; 434]].concat();
        let filler = [&filler[..], &crc::to_octets(crc::crc32c(&filler))].concat();
        let second = header(2);
        let second = [b"\x00\x2a", &second[..18], b"\0\0\0\x14", &second[18..], b"\x84\x92\x58\x98"].concat();
        ([first, filler, second].concat(), [header(1), vec![7; 434], header(2)])
    }

    fn read(crc: bool, pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, FpduError> {
        read_framed(Framing { markers: false, crc }, pieces)
    }

    fn read_framed(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, FpduError> {
        let mut deframer = Deframer::new(framing);
        let mut ulpdus = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(ulpdu) = deframer.next(&mut input) {
                ulpdus.push(ulpdu?.to_vec());
            }
            assert!(input.is_empty());
        }
        Ok(ulpdus)
    }

    #[test]
    fn any_split_gives_the_same_ulpdus() {
        let stream = [WRITE, SEND, WRITE].concat();
        let expected = [&WRITE[2..16], &SEND[2..20], &WRITE[2..16]];
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(read(true, &pieces).unwrap(), expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_wrong_crc_is_reported_with_its_position_and_only_when_crcs_are_used() {
        let mut stream = [WRITE, SEND].concat();
        stream[43] ^= 1;
        let error = read(true, &[&stream]).unwrap_err();
        assert_eq!(error, FpduError::Crc { position: 20, computed: 0xc4e8_7b58, found: 0xc5e8_7b58 });
        assert_eq!(read(false, &[&stream]).unwrap().len(), 2);
    }

    #[test]
    fn the_longest_fpdu_fits_and_bounds_the_buffer() {
        let mut stream = vec![0xff; 65_544];
        stream.extend_from_slice(&[0, 0]);
        let pieces: Vec<&[u8]> = stream.chunks(1000).collect();
        assert_eq!(read(false, &pieces).unwrap(), [vec![0xff; 65_535]]);
        let mut deframer = Deframer::new(Framing { markers: false, crc: false });
        for piece in pieces {
            let mut input = piece;
            while deframer.next(&mut input).is_some() {}
            assert!(deframer.partial.len() <= 65_544);
        }
        assert!(!deframer.is_at_boundary());
    }

    #[test]
    fn figures_5_and_6_in_any_split() {
        let (stream, ulpdus) = figures();
        for first in 0..=stream.len() {
            for second in (first..=stream.len()).step_by(if first % 50 == 0 { 1 } else { 64 }) {
                let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
                let framing = Framing { markers: true, crc: true };
                assert_eq!(read_framed(framing, &pieces).unwrap(), ulpdus, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_marker_that_points_elsewhere_is_reported_with_its_position() {
        let (mut stream, _) = figures();
        stream[0x203] = 0x10;
        let unchecked = Framing { markers: true, crc: false };
        let error = read_framed(unchecked, &[&stream]).unwrap_err();
        assert_eq!(error, FpduError::Marker { position: 0x200, expected: 0x14, found: 0x10 });
        // If the CRC and the marker are wrong, the deframer reports the CRC.
        let framing = Framing { markers: true, crc: true };
        assert!(matches!(read_framed(framing, &[&stream]), Err(FpduError::Crc { position: 0x1ec, .. })));
        // The deframer ignores RESERVED and the two low bits of FPDUPTR.
        stream[0x200..0x204].copy_from_slice(b"\xff\xff\0\x17");
        assert_eq!(read_framed(unchecked, &[&stream]).unwrap().len(), 3);
    }

    #[test]
    fn the_longest_fpdu_with_markers_bounds_the_buffers() {
        let octets = [&[0; 4][..], &[0xff; 66_060]].concat();
        let mut deframer = Deframer::new(Framing { markers: true, crc: false });
        assert!(deframer.next(&mut &octets[..66_063]).is_none());
        assert_eq!(deframer.partial.len(), 66_063);
        // The marker has the value 0xffff. The expected FPDUPTR is 508.
        assert!(matches!(deframer.next(&mut &octets[66_063..]), Some(Err(FpduError::Marker { position: 512, .. }))));
    }

    /// An idle connection that has received long split FPDUs keeps no more memory than a connection
    /// without such FPDUs.
    #[test]
    fn between_fpdus_no_room_for_a_long_one_is_kept() {
        for markers in [false, true] {
            let framing = Framing { markers, crc: true };
            let fpdu = super::super::FpduSender::new(framing).fpdu(&[&[7; 60_000]]).unwrap();
            let mut deframer = Deframer::new(framing);
            let (mut first, mut rest) = fpdu.split_at(1000);
            assert!(deframer.next(&mut first).is_none());
            assert_eq!(deframer.next(&mut rest).unwrap().unwrap(), [7; 60_000]);
            let kept = |deframer: &Deframer| deframer.partial.capacity() + deframer.ulpdu.capacity();
            assert!(kept(&deframer) >= 60_000, "the returned ULPDU is still in the buffer");
            assert!(deframer.next(&mut rest).is_none());
            assert_eq!((kept(&deframer), deframer.is_at_boundary()), (0, true), "markers: {markers}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_panic(markers: bool, crc: bool, pieces: Vec<Vec<u8>>) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let _ = read_framed(Framing { markers, crc }, &pieces);
        }

        /// For pieces of any size, the deframer returns the ULPDUs that the sender framed.
        #[test]
        fn what_is_framed_is_read_back(
            lengths in prop::collection::vec(0usize..1600, 1..12), markers: bool, crc: bool, piece in 1usize..700,
        ) {
            let framing = Framing { markers, crc };
            let mut sender = super::super::FpduSender::new(framing);
            let ulpdus: Vec<Vec<u8>> = lengths.iter().map(|length| vec![*length as u8; *length]).collect();
            let stream = ulpdus.iter().map(|ulpdu| sender.fpdu(&[ulpdu]).unwrap()).collect::<Vec<_>>().concat();
            let pieces: Vec<&[u8]> = stream.chunks(piece).collect();
            prop_assert_eq!(read_framed(framing, &pieces).unwrap(), ulpdus);
        }
    }
}
