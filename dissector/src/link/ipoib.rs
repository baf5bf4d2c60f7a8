//! Reads the header of IP over InfiniBand (RFC 4391, section 6). The header has an EtherType and
//! two reserved bytes.
//!
//! There are three variants: before the EtherType, a capture program inserts nothing, or the
//! address of the destination (20 bytes), or a global route header (40 bytes). No field shows which
//! variant a capture has. weft tries the variants in this order, and takes the first variant in
//! which an IP packet follows.

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
    // No variant fits, for example because the packet is ARP and not IP. So the variant is unknown,
    // and weft guesses the EtherType from the last variant.
    match u16_at(bytes, BEFORE[2]) {
        Ok(ether_type) => ethernet::payload(ether_type, &[]).and(Err(SkipReason::Malformed)),
        Err(_) => Err(SkipReason::Truncated),
    }
}
