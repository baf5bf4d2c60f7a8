//! IP over InfiniBand (RFC 4391, section 6): an EtherType and two reserved bytes.
//!
//! Capture programs put different headers before it: nothing, the destination's address (20 bytes),
//! or a global route header (40 bytes). The file does not name the variant, so the first position
//! at which an IP packet begins is used.

use super::ethernet;
use super::header::{Header, Step, u16_at};
use super::unread::Unread;

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
    // ARP and others; without a packet to compare with, the number is a guess.
    match u16_at(bytes, BEFORE[2]) {
        Ok(ether_type) => ethernet::payload(ether_type, &[]).and(Err(Unread::Malformed)),
        Err(_) => Err(Unread::Truncated),
    }
}
