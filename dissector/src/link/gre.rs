//! Reads the headers of GRE (RFC 2784, 2890), NVGRE (RFC 7637), the GRE of PPTP (RFC 2637), and
//! ERSPAN I to III (draft-foschiano-erspan).

use super::ether_type;
use super::header::{Header, Step, u8_at, u16_at};
use super::skip_reason::SkipReason;

const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// This flag exists only in version 1.
const ACKNOWLEDGEMENT: u16 = 0x0080;
const VERSION: u16 = 0x0007;

const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
const ERSPAN_2_LEN: usize = 8;
const ERSPAN_3_LEN: usize = 12;

pub(super) fn read(bytes: &[u8]) -> Step {
    let flags = u16_at(bytes, 0)?;
    let version = flags & VERSION;
    if flags & ROUTING != 0 || version > 1 {
        return Err(SkipReason::Malformed);
    }
    let words = [CHECKSUM, KEY, SEQUENCE].iter().filter(|flag| flags & **flag != 0).count()
        + usize::from(version == 1 && flags & ACKNOWLEDGEMENT != 0);
    let at = 4 + words * 4;
    match u16_at(bytes, 2)? {
        // ERSPAN I has no ERSPAN header, and no sequence number in the GRE header.
        ERSPAN if flags & SEQUENCE == 0 => Ok((Header::Ethernet, at)),
        ERSPAN => Ok((Header::Ethernet, at + ERSPAN_2_LEN)),
        ERSPAN_3 => erspan_3(bytes, at),
        small if small < 0x0600 => Err(SkipReason::TunnelControl),
        ether_type => ether_type::named(ether_type, at),
    }
}

/// Returns the offset of the network number of NVGRE. The number is the upper 24 bits of the key
/// (RFC 7637 section 3.2). Returns `None` if the header is GRE but not NVGRE.
pub(super) fn vsid(bytes: &[u8]) -> Option<usize> {
    let flags = u16_at(bytes, 0).ok()?;
    let is_nvgre = flags & (KEY | VERSION) == KEY && u16_at(bytes, 2).ok()? == ether_type::TRANSPARENT_BRIDGING;
    is_nvgre.then_some(if flags & CHECKSUM == 0 { 4 } else { 8 })
}

/// Reads an ERSPAN III header. The last bits of the header show whether the frame is Ethernet or
/// IP, and whether the header has eight further bytes.
fn erspan_3(bytes: &[u8], at: usize) -> Step {
    let last = u16_at(bytes, at + 10)?;
    let frame_type = last >> 10 & 0x1f;
    let more = if last & 1 == 0 { 0 } else { 8 };
    // Check that the eight further bytes were captured, although weft does not use them.
    u8_at(bytes, at + ERSPAN_3_LEN + more)?;
    let at = at + ERSPAN_3_LEN + more;
    match frame_type {
        0 => Ok((Header::Ethernet, at)),
        2 => Ok((Header::Ip, at)),
        _ => Err(SkipReason::TunnelControl),
    }
}
