//! IP over InfiniBand (RFC 4391, section 6). The header has an EtherType and two reserved bytes.
//!
//! There are three variants. A capture program inserts the address of the destination (20 bytes), a
//! global route header (40 bytes), or nothing before the EtherType. The file does not name the
//! variant. weft takes the first variant in which an IP packet follows.

use super::ethernet;
use super::header::{Header, Step, u16_at};
use super::skip_reason::SkipReason;

const LEN: usize = 4;
const BEFORE: [usize; 3] = [0, 20, 40];

pub(super) fn read(bytes: &[u8]) -> Step {
    for before in BEFORE {
        let at = before + LEN;
        let Some(&[_, _, 0, 0]) = bytes.get(before..at) else { continue };
        let version = bytes.get(at).map_or(0, |first| first >> 4);
        match u16_at(bytes, before)? {
            0x0800 if version == 4 => return Ok((Header::Ip, at)),
            0x86dd if version == 6 => return Ok((Header::Ip, at)),
            _ => {}
        }
    }
    // No variant has an IP packet, for example because the packet is ARP. So the variant is
    // unknown, and the EtherType of the last variant is a guess.
    match u16_at(bytes, BEFORE[2]) {
        Ok(ether_type) => ethernet::payload(ether_type, &[]).and(Err(SkipReason::Malformed)),
        Err(_) => Err(SkipReason::Truncated),
    }
}
