//! The parts of FPDUs, so that a fault can aim at one of them.
//!
//! The tap of the sender finds the parts of an FPDU when the last byte of the FPDU arrives. So a
//! fault can aim only at those bytes of an FPDU that are in the same segment as the last byte.

use std::ops::Range;

use weft_core::crc::CRC_LEN;
use weft_core::marker::MARKER_LEN;
use weft_core::wire::ddp::{Control, RawHeader};
use weft_core::wire::mpa::fpdu::LENGTH_LEN;
use weft_dissector::FrameNumber;
use weft_dissector::parse::Fpdu;
use weft_dissector::unit::Unit;

/// A part of an FPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FpduPart {
    /// `ULPDU_Length` and the DDP header.
    Header,
    /// The payload of the DDP segment.
    Payload,
    /// PAD.
    Pad,
    /// A marker.
    Marker,
    /// The CRC field.
    Crc,
}

/// Contiguous bytes of a part of an FPDU, in one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartInFrame {
    /// The part.
    pub part: FpduPart,
    /// Offset of the first of these bytes in the FPDU. Markers do not count. `None` for a marker.
    pub offset: Option<usize>,
    /// Whether these bytes are the beginning of the part.
    pub is_start: bool,
    /// Offsets of the bytes in the frame.
    pub range: Range<usize>,
}

/// A place of an FPDU at which a segment can be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitAt {
    /// Between two bytes of this part.
    Inside(FpduPart),
    /// Directly before the CRC field.
    BeforeCrc,
    /// After this number of bytes of the FPDU. Markers do not count.
    Offset(usize),
}

impl SplitAt {
    /// All places at which a segment can be divided, as numbers of payload bytes before the place.
    /// `payload` has the offsets of the payload in the frame.
    pub(crate) fn cuts(self, parts: &[PartInFrame], payload: &Range<usize>) -> Vec<usize> {
        let of_part = |part: &PartInFrame| match self {
            SplitAt::Inside(kind) => (part.part == kind).then(|| part.range.start + 1..part.range.end),
            SplitAt::BeforeCrc => {
                let at = part.range.start;
                (part.part == FpduPart::Crc && part.is_start).then_some(at..at + 1)
            }
            SplitAt::Offset(offset) => {
                let within = part.offset.and_then(|first| offset.checked_sub(first));
                let at = within.filter(|within| *within < part.range.len()).map(|within| part.range.start + within);
                at.map(|at| at..at + 1)
            }
        };
        let cuts = parts.iter().filter_map(of_part).flatten();
        cuts.filter(|at| payload.start < *at && *at < payload.end).map(|at| at - payload.start).collect()
    }
}

/// The offsets in the frame of all bytes of the parts `wanted`.
pub(crate) fn bytes_of(wanted: &[FpduPart], parts: &[PartInFrame]) -> Vec<usize> {
    parts.iter().filter(|part| wanted.contains(&part.part)).flat_map(|part| part.range.clone()).collect()
}

/// The parts of an FPDU that are in `frame`. `unit` is the unit of the FPDU.
pub(crate) fn parts_in(frame: FrameNumber, unit: &Unit<'_>, fpdu: &Fpdu<'_>) -> Vec<PartInFrame> {
    let Some(control) = fpdu.ulpdu().get(0..1).filter(|_| !unit.parsed.incomplete) else { return Vec::new() };
    let body = fpdu.body.len();
    let ulpdu_end = (LENGTH_LEN + usize::from(fpdu.layout.ulpdu_length)).min(body);
    let header_end = (LENGTH_LEN + RawHeader::len_of(Control(control[0]))).min(ulpdu_end);
    // In the offsets of a unit, the CRC field follows PAD, and then all markers follow.
    let markers = body + CRC_LEN;
    let of_marker = |index: usize| {
        let start = markers + index * MARKER_LEN;
        (FpduPart::Marker, start..start + MARKER_LEN)
    };
    let ranges = [
        (FpduPart::Header, 0..header_end),
        (FpduPart::Payload, header_end..ulpdu_end),
        (FpduPart::Pad, ulpdu_end..body),
        (FpduPart::Crc, body..markers),
    ];
    let mut parts = Vec::new();
    for (part, range) in ranges.into_iter().chain((0..fpdu.markers.len()).map(of_marker)) {
        let mut at = range.start;
        for location in unit.parsed.locate(range.clone()) {
            let len = usize::try_from(location.len).unwrap_or(usize::MAX);
            if location.frame == frame
                && let Some(from) = location.offset
            {
                let from = from as usize;
                parts.push(PartInFrame {
                    part,
                    offset: (part != FpduPart::Marker).then_some(at),
                    is_start: at == range.start,
                    range: from..from.saturating_add(len),
                });
            }
            at = at.saturating_add(len);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use weft_core::wire::mpa::fpdu::{Framing, emit};

    use super::*;
    use crate::frame::TcpFrame;
    use crate::side::Side;
    use crate::synthetic::{Connection, SegmentKind};
    use crate::tap::Tap;
    use crate::testing::{A, B};

    /// A Send with five bytes of payload. Its FPDU has three bytes of PAD (RFC 5044 section 4.1).
    const SEND: &[u8] = b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0weft!";

    /// Returns the parts of the FPDUs in the last of these segments of A, and the offset of its
    /// payload. The segments follow start-up. B requests markers.
    fn parts(frames: &[&[u8]]) -> (Vec<PartInFrame>, usize) {
        let mut tap = Tap::new(Side::A, "a", None::<Vec<u8>>).unwrap();
        tap.find_parts();
        let mut connection = Connection::new(A, B, 0);
        let start = [
            (Side::A, SegmentKind::Syn, &b""[..]),
            (Side::B, SegmentKind::SynAck, b""),
            (Side::A, SegmentKind::Ack, b""),
            (Side::A, SegmentKind::Data, b"MPA ID Req Frame\x40\x01\0\0"),
            (Side::B, SegmentKind::Data, b"MPA ID Rep Frame\xc0\x01\0\0"),
        ];
        let (mut time, mut payload) = (0, 0);
        for (from, kind, octets) in start.into_iter().chain(frames.iter().map(|it| (Side::A, SegmentKind::Data, *it))) {
            time += 1;
            let frame = connection.frame(from, kind, octets);
            payload = TcpFrame::find(&frame).unwrap().payload.start;
            tap.record(time, from, &frame, &[], &[]).unwrap();
        }
        (tap.take_parts(), payload)
    }

    /// An FPDU of `SEND` at the start of a stream with markers.
    fn fpdu() -> Vec<u8> {
        let mut octets = Vec::new();
        emit(0, &[SEND], Framing { markers: true, crc: true }, &mut octets).unwrap();
        octets
    }

    #[test]
    fn the_parts_of_an_fpdu_are_found() {
        let (parts, payload) = parts(&[&fpdu()]);
        let at = |from: usize, to: usize| payload + from..payload + to;
        let found: Vec<_> = parts.into_iter().map(|it| (it.part, it.offset, it.is_start, it.range)).collect();
        let expected = [
            (FpduPart::Header, Some(0), true, at(4, 24)),
            (FpduPart::Payload, Some(20), true, at(24, 29)),
            (FpduPart::Pad, Some(25), true, at(29, 32)),
            (FpduPart::Crc, Some(28), true, at(32, 36)),
            (FpduPart::Marker, None, true, at(0, 4)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_the_last_segment_of_an_fpdu_has_parts() {
        let fpdu = fpdu();
        assert_eq!(parts(&[&fpdu[..26]]).0, []);
        let (parts, payload) = parts(&[&fpdu[..26], &fpdu[26..]]);
        let first =
            PartInFrame { part: FpduPart::Payload, offset: Some(22), is_start: false, range: payload..payload + 3 };
        assert_eq!((parts.len(), &parts[0]), (3, &first));
    }

    #[test]
    fn places_are_inside_the_payload() {
        let of = |part, offset, range| PartInFrame { part, offset, is_start: true, range };
        // The payload of the frame begins with the marker, at offset 54.
        let parts = [
            of(FpduPart::Header, Some(0), 58..78),
            of(FpduPart::Payload, Some(20), 78..83),
            of(FpduPart::Pad, Some(25), 83..86),
            of(FpduPart::Crc, Some(28), 86..90),
            of(FpduPart::Marker, None, 54..58),
        ];
        let cuts = |place: SplitAt| place.cuts(&parts, &(54..90));
        assert_eq!(cuts(SplitAt::Inside(FpduPart::Header)), (5..24).collect::<Vec<_>>());
        assert_eq!(cuts(SplitAt::Inside(FpduPart::Marker)), [1, 2, 3]);
        assert_eq!(cuts(SplitAt::Inside(FpduPart::Crc)), [33, 34, 35]);
        assert_eq!(cuts(SplitAt::BeforeCrc), [32]);
        assert_eq!(cuts(SplitAt::Offset(0)), [4]);
        assert_eq!(cuts(SplitAt::Offset(29)), [33]);
        assert_eq!(cuts(SplitAt::Offset(32)), [0; 0]);
        assert_eq!(bytes_of(&[FpduPart::Pad, FpduPart::Crc], &parts), (83..90).collect::<Vec<_>>());
    }
}
