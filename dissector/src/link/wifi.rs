//! Reads the headers of IEEE 802.11 data frames, and the headers that capture programs insert
//! before them (radiotap, Prism, AVS).

use super::header::{Header, Step, u8_at, u32_le};
use super::skip_reason::SkipReason;

const PRISM_LEN: usize = 144;
/// Message codes of a Prism header. If a header does not start with such a code, it is an AVS
/// header.
const PRISM_CODES: [u32; 2] = [0x41, 0x44];

/// The frame type of data frames.
const DATA: u8 = 2;
/// Two bits in the subtype of a data frame. The first bit means that the frame has no data. The
/// second bit means that the frame has a QoS field (quality of service).
const NO_DATA: u8 = 0x4;
const QOS: u8 = 0x8;

const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const MORE_FRAGMENTS: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// If this bit in the QoS field is set, the frame contains several packets.
const AGGREGATE: u8 = 0x80;

/// Bits in the first presence word of radiotap: time stamp (8 bytes), flags (1 byte).
const HAS_TIME: u32 = 1;
const HAS_FLAGS: u32 = 1 << 1;
const MORE_PRESENCE: u32 = 1 << 31;
/// If this bit in the flags of radiotap is set, the 802.11 header is padded to a multiple of four
/// bytes.
const PADDED: u8 = 0x20;

pub(super) fn radiotap(bytes: &[u8]) -> Step {
    let length = usize::from(u16::from_le_bytes([u8_at(bytes, 2)?, u8_at(bytes, 3)?]));
    let present = u32_le(bytes, 4)?;
    let mut at = 8;
    let mut last = present;
    while last & MORE_PRESENCE != 0 && at < length {
        last = u32_le(bytes, at)?;
        at += 4;
    }
    if present & HAS_TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let padded = present & HAS_FLAGS != 0 && at < length && u8_at(bytes, at)? & PADDED != 0;
    if length < 8 { Err(SkipReason::Malformed) } else { Ok((Header::Wifi { padded }, length)) }
}

pub(super) fn prism(bytes: &[u8]) -> Step {
    let code = u32_le(bytes, 0)?;
    if PRISM_CODES.contains(&code) { Ok((Header::Wifi { padded: false }, PRISM_LEN)) } else { avs(bytes) }
}

/// Reads an AVS header: version and length, in big-endian order.
pub(super) fn avs(bytes: &[u8]) -> Step {
    let length = bytes.get(4..8).ok_or(SkipReason::Truncated)?;
    match u32::from_be_bytes([length[0], length[1], length[2], length[3]]) {
        length @ 8..=1024 => Ok((Header::Wifi { padded: false }, length as usize)),
        _ => Err(SkipReason::Malformed),
    }
}

pub(super) fn read(bytes: &[u8], padded: bool) -> Step {
    let (control, flags) = (u8_at(bytes, 0)?, u8_at(bytes, 1)?);
    let subtype = control >> 4;
    if control >> 2 & 3 != DATA || subtype & NO_DATA != 0 {
        return Err(SkipReason::WifiOther);
    }
    if flags & PROTECTED != 0 {
        return Err(SkipReason::WifiEncrypted);
    }
    let fragment = u8_at(bytes, 22)? & 0xf;
    if flags & MORE_FRAGMENTS != 0 || fragment != 0 {
        return Err(SkipReason::WifiFragment);
    }
    // A frame between access points has a fourth address.
    let mut at = if flags & (TO_DS | FROM_DS) == TO_DS | FROM_DS { 30 } else { 24 };
    if subtype & QOS != 0 {
        if u8_at(bytes, at)? & AGGREGATE != 0 {
            return Err(SkipReason::WifiFragment);
        }
        at += 2;
        if flags & ORDER != 0 {
            at += 4;
        }
    }
    Ok((Header::Llc, if padded { at.next_multiple_of(4) } else { at }))
}
