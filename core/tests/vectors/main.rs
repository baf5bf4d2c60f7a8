//! Compares the FPDUs and start-up frames of this crate with octet strings from other sources: the
//! figures of the RFCs, an independent implementation of CRC32c and framing, and captures of other
//! stacks.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod captured;
mod crc;
mod framing;
mod messages;
mod startup;

use weft_core::wire::ddp::{Msn, Tagged, Untagged, UntaggedUlp};
use weft_core::wire::mpa::{Fpdu, Framing, Layout, fpdu};
use weft_core::wire::rdmap::{Control, Opcode};

/// Converts hexadecimal digits to octets. Ignores blanks.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}

/// Returns an FPDU with CRC at the stream position `position`. It contains `ulpdu`.
fn framed(position: u64, markers: bool, ulpdu: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    fpdu::emit(position, &[ulpdu], Framing { markers, crc: true }, &mut out).unwrap();
    out
}

/// Reads the FPDU at `position`, checks CRC and markers, and returns its ULPDU.
fn unframed(position: u64, markers: bool, octets: &[u8]) -> Vec<u8> {
    let phase = Framing { markers, crc: true }.phase();
    let header = usize::try_from(fpdu::header_position(position, phase) - position).unwrap();
    let length = u16::from_be_bytes([octets[header], octets[header + 1]]);
    let fpdu = Fpdu::new(octets, Layout::new(position, length, phase)).unwrap();
    assert_eq!((fpdu.check_crc(), fpdu.check_markers()), (Ok(()), Ok(())));
    fpdu.ulpdu().collect::<Vec<_>>().concat()
}

/// Checks that emitting `ulpdu` at `position` gives `expected`, and that reading `expected` gives
/// `ulpdu`.
fn both_ways(position: u64, markers: bool, ulpdu: &[u8], expected: &[u8]) {
    assert_eq!(framed(position, markers, ulpdu), expected);
    assert_eq!(unframed(position, markers, expected), ulpdu);
}

/// Does the same as [`both_ways`] for an FPDU without markers. `field` is only the expected CRC
/// field.
fn crc_field(ulpdu: &[u8], field: &str) {
    let octets = framed(0, false, ulpdu);
    assert_eq!(octets[octets.len() - 4..], hex(field), "CRC field of {octets:02x?}");
    assert_eq!(unframed(0, false, &octets), ulpdu);
}

/// Returns an untagged ULPDU of version 1 with MO 0. It is the only segment of its message.
fn untagged(opcode: Opcode, qn: u32, msn: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let ulp = UntaggedUlp { control: Control::new(opcode, 1), word: 0 };
    Untagged { last: true, qn, msn: Msn::new(msn), mo: 0 }.emit(1, ulp, &mut out);
    out.extend_from_slice(payload);
    out
}

/// Returns a tagged ULPDU of version 1. It is the only segment of its message.
fn tagged(opcode: Opcode, stag: u32, tagged_offset: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Tagged { last: true, stag, tagged_offset }.emit(1, Control::new(opcode, 1), &mut out);
    out.extend_from_slice(payload);
    out
}
