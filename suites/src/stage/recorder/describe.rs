//! Describes bytes and marks their fields, for transcripts. The monitor judges the bytes.

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, len_without_markers};
use weft_core::wire::mpa::startup::{HEADER_LEN, KEY_LEN, REPLY_KEY, REQUEST_KEY};
use weft_core::wire::mpa::{Startup, StartupKind};

use crate::model::{Mark, MarkKind, Octets};

/// Returns the number of bytes and, for a start-up frame or an FPDU, its name.
pub(in crate::stage) fn stream(octets: &[u8]) -> String {
    let len = match octets.len() {
        1 => "1 byte".to_owned(),
        len => format!("{len} bytes"),
    };
    name(octets).map_or_else(|| len.clone(), |name| format!("an {name} ({len})"))
}

/// Returns the name of a complete start-up frame or FPDU.
pub(in crate::stage) fn name(octets: &[u8]) -> Option<String> {
    if let Ok(frame) = Startup::parse(octets) {
        let kind = if frame.kind == StartupKind::Reply { "MPA Reply" } else { "MPA Request" };
        let (m, c, r) = (u8::from(frame.markers), u8::from(frame.crc), u8::from(frame.reject));
        return Some(format!("{kind}, revision {}, M={m} C={c} R={r}", frame.revision));
    }
    let segment = Segment::parse(complete_ulpdu(octets)?).ok()?;
    Some(format!("FPDU with {}", segment.ulp_control().opcode().name()))
}

/// Returns the bytes, with marks for their fields, followed by `marks`.
pub(in crate::stage) fn octets(octets: &[u8], marks: &[Mark]) -> Octets {
    let mut shown = Octets::new(octets);
    let mut field = |start: usize, end: usize, label: &str| {
        if start < end && end <= octets.len() {
            let (start, end) = (start as u64, end as u64);
            shown.marks.push(Mark { start, end, label: label.to_owned(), kind: MarkKind::Field });
        }
    };
    if is_startup(octets) {
        field(0, KEY_LEN, "Key");
        field(KEY_LEN, 17, "M, C, R, S, Res");
        field(17, 18, "Rev");
        field(18, HEADER_LEN, "PD_Length");
        field(HEADER_LEN, octets.len(), "Private Data");
    } else if let Some(ulpdu) = complete_ulpdu(octets) {
        let ulpdu_end = LENGTH_LEN + ulpdu.len();
        let crc = octets.len() - weft_core::crc::CRC_LEN;
        field(0, LENGTH_LEN, "ULPDU_Length");
        field(LENGTH_LEN, ulpdu_end, "ULPDU");
        field(ulpdu_end, crc, "PAD");
        field(crc, octets.len(), "CRC");
    }
    shown.marks.extend_from_slice(marks);
    shown
}

/// Returns whether the bytes are a start-up frame, in which a few bytes of the key may be wrong.
fn is_startup(octets: &[u8]) -> bool {
    let like = |key: &[u8; KEY_LEN]| octets.iter().zip(key).filter(|(a, b)| a == b).count() > KEY_LEN / 2;
    octets.len() >= HEADER_LEN && (like(&REQUEST_KEY) || like(&REPLY_KEY))
}

/// Returns the ULPDU, if the bytes are exactly one FPDU without markers.
fn complete_ulpdu(octets: &[u8]) -> Option<&[u8]> {
    let length = u16::from_be_bytes(*octets.first_chunk()?);
    (octets.len() == len_without_markers(length)).then(|| &octets[LENGTH_LEN..LENGTH_LEN + usize::from(length)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correct;

    #[test]
    fn names_a_frame_and_its_length() {
        let reply = correct::startup(&correct::StartupFields::REPLY);
        assert_eq!(stream(&reply), "an MPA Reply, revision 1, M=0 C=1 R=0 (20 bytes)");
        assert_eq!(stream(&correct::fpdu(&correct::send(1, b"hi"), true)), "an FPDU with Send (28 bytes)");
        assert_eq!(stream(&[0]), "1 byte");
        assert_eq!(stream(&[]), "0 bytes");
    }

    #[test]
    fn fields_are_marked_in_a_frame_with_a_wrong_key_too() {
        let mut request = correct::startup(&correct::StartupFields::REQUEST);
        request[3] ^= 0xff;
        let labels: Vec<String> = octets(&request, &[]).marks.into_iter().map(|mark| mark.label).collect();
        assert_eq!(labels, ["Key", "M, C, R, S, Res", "Rev", "PD_Length"]);
        assert_eq!(octets(b"", &[]).marks, []);
    }
}
