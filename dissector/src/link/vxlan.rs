//! Reads the headers of VXLAN (RFC 7348), and of its extension with a next-protocol field
//! (draft-ietf-nvo3-vxlan-gpe).

use super::header::{Header, Step, u8_at};
use super::nsh;
use super::skip_reason::SkipReason;

/// UDP ports of VXLAN: the port that IANA assigned, and the older port that Linux uses.
pub(crate) const PORTS: [u16; 2] = [4789, 8472];
/// The UDP port of VXLAN-GPE.
pub(crate) const GPE_PORT: u16 = 4790;

const LEN: usize = 8;
const HAS_NETWORK: u8 = 0x08;
const HAS_NEXT: u8 = 0x04;

pub(super) fn read(bytes: &[u8]) -> Step {
    if u8_at(bytes, 0)? & HAS_NETWORK == 0 {
        return Err(SkipReason::Malformed);
    }
    Ok((Header::Ethernet, LEN))
}

pub(super) fn read_gpe(bytes: &[u8]) -> Step {
    let flags = u8_at(bytes, 0)?;
    if flags & HAS_NETWORK == 0 {
        return Err(SkipReason::Malformed);
    }
    if flags & HAS_NEXT == 0 { Ok((Header::Ethernet, LEN)) } else { nsh::next(u8_at(bytes, 3)?, LEN) }
}
