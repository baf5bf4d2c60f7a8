//! Reads the Network Service Header (RFC 8300).

use super::header::{Header, Step, u8_at};
use super::skip_reason::SkipReason;

pub(super) fn read(bytes: &[u8]) -> Step {
    let words = u8_at(bytes, 1)? & 0x3f;
    if words < 2 {
        return Err(SkipReason::Malformed);
    }
    let at = usize::from(words) * 4;
    next(u8_at(bytes, 3)?, at)
}

/// Returns the step to the header at offset `at`. `protocol` is the next-protocol number of NSH or
/// VXLAN-GPE; this number announces the header.
pub(super) fn next(protocol: u8, at: usize) -> Step {
    match protocol {
        1 | 2 => Ok((Header::Ip, at)),
        3 => Ok((Header::Ethernet, at)),
        4 => Ok((Header::EtherType(0x894f), at)),
        5 => Ok((Header::Mpls, at)),
        _ => Err(SkipReason::TunnelControl),
    }
}
