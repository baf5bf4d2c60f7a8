//! Changes to the bytes of one PDU.

use fastrand::Rng;
use weft_core::wire::mpa::startup::HEADER_LEN;

/// Offsets and lengths of fields, in bytes.
pub(super) type Fields = &'static [(usize, usize)];

/// Fields of a start-up frame: flags, revision, `PD_Length`, IRD, ORD, and the end of the key.
pub(super) const STARTUP: Fields =
    &[(16, 1), (17, 1), (HEADER_LEN - 2, 2), (HEADER_LEN, 2), (HEADER_LEN + 2, 2), (8, 8)];
/// Fields of a ULPDU. They are the control bytes of DDP and RDMAP, all fields of tagged and
/// untagged headers, and fields of Read Requests and Atomic Requests.
pub(super) const ULPDU: Fields =
    &[(0, 1), (1, 1), (2, 4), (6, 8), (6, 4), (10, 4), (14, 4), (18, 4), (22, 8), (30, 4), (34, 4), (38, 8), (30, 8)];
/// Fields of an FPDU without markers: `ULPDU_Length`, and fields at the start of the ULPDU.
pub(super) const FPDU: Fields = &[(0, 2), (0, 2), (2, 1), (3, 1), (4, 4), (8, 8)];
/// Fields of an unknown PDU: its first bytes.
pub(super) const UNKNOWN: Fields = &[(0, 1), (0, 2), (0, 4)];

/// Flips one bit, or two to eight bits.
pub(super) fn flip(rng: &mut Rng, octets: &mut [u8]) {
    let bits = if rng.bool() { 1 } else { rng.usize(2..=8) };
    for _ in 0..bits {
        if let Some(octet) = pick(rng, octets) {
            *octet ^= 1 << rng.u32(0..8);
        }
    }
}

/// Sets a field to a value at the edge of its range, to a value near the current value, or to a
/// random value.
pub(super) fn edge(rng: &mut Rng, octets: &mut [u8], fields: Fields) {
    let Some((offset, len)) = rng.choice(fields).copied() else { return };
    let Some(field) = octets.get_mut(offset..offset + len) else { return };
    let right = field.iter().fold(0, |value, octet| value << 8 | u64::from(*octet));
    let top = 1_u64 << (8 * len - 1);
    let value = match rng.u32(0..12) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::MAX - 1,
        4 => top,
        5 => top - 1,
        6 => right.wrapping_add(1),
        7 => right.wrapping_sub(1),
        8 => right.wrapping_add(4096),
        9 => right.wrapping_shl(1),
        10 => 0_u64.wrapping_sub(rng.u64(2..=4096)),
        _ => rng.u64(..),
    };
    field.copy_from_slice(&value.to_be_bytes()[8 - len..]);
}

/// Removes bytes from the end.
pub(super) fn truncate(rng: &mut Rng, octets: &mut Vec<u8>) {
    octets.truncate(rng.usize(0..=octets.len()));
}

/// Inserts up to 32 bytes. Either all of these bytes are equal, or they are random.
pub(super) fn insert(rng: &mut Rng, octets: &mut Vec<u8>) {
    let mut more = vec![*rng.choice(&[0, 0xff]).unwrap_or(&0); rng.usize(1..=32)];
    if rng.bool() {
        rng.fill(&mut more);
    }
    let at = rng.usize(0..=octets.len());
    octets.splice(at..at, more);
}

/// Selects a byte. With a probability of one half, the byte is one of the first 48 bytes, because
/// changes in headers have the most effect.
fn pick<'a>(rng: &mut Rng, octets: &'a mut [u8]) -> Option<&'a mut u8> {
    const HEADERS: usize = 48;
    let among = if rng.bool() { octets.len().min(HEADERS) } else { octets.len() };
    if among == 0 { None } else { octets.get_mut(rng.usize(0..among)) }
}
