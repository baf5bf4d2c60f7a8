//! Reads GENEVE headers (RFC 8926).

use super::ether_type;
use super::header::{Step, u8_at, u16_at};
use super::skip_reason::SkipReason;

/// UDP port of GENEVE.
pub(crate) const PORT: u16 = 6081;

const FIXED_LEN: usize = 8;
/// The O bit. If it is set, the packet is a control packet for the endpoints of the tunnel.
const CONTROL: u8 = 0x80;

pub(super) fn read(bytes: &[u8]) -> Step {
    let first = u8_at(bytes, 0)?;
    if first >> 6 != 0 {
        return Err(SkipReason::Malformed);
    }
    if u8_at(bytes, 1)? & CONTROL != 0 {
        return Err(SkipReason::TunnelControl);
    }
    let at = FIXED_LEN + usize::from(first & 0x3f) * 4;
    ether_type::without_length(u16_at(bytes, 2)?, at)
}
