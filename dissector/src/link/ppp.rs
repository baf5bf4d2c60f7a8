//! Reads the headers of PPP (RFC 1661, 1662), PPP over Ethernet (RFC 2516), and Cisco HDLC.

use super::ether_type;
use super::header::{Header, Step, u8_at, u16_at};
use super::skip_reason::SkipReason;

const IPV4: u16 = 0x0021;
const IPV6: u16 = 0x0057;
const MPLS: u16 = 0x0281;

/// Reads a PPP header. Address and control are optional (RFC 1661, 6.6). The first byte of the
/// protocol number is optional if the number is below 256 (RFC 1661, 6.5).
pub(super) fn read(bytes: &[u8]) -> Step {
    let at = if bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let first = u8_at(bytes, at)?;
    // The last byte of a protocol number is odd. If the number has two bytes, its first byte is
    // even.
    let (protocol, at) = if first & 1 == 1 { (u16::from(first), at + 1) } else { (u16_at(bytes, at)?, at + 2) };
    match protocol {
        IPV4 | IPV6 => Ok((Header::Ip, at)),
        MPLS => Ok((Header::Mpls, at)),
        other => Err(SkipReason::PppProtocol(other)),
    }
}

/// Reads a PPP header with a direction byte. The direction byte replaces the address byte, or is
/// before the address byte.
pub(super) fn read_with_direction(bytes: &[u8]) -> Step {
    let address_replaced = u8_at(bytes, 1)? == 0x03;
    Ok((Header::Ppp, if address_replaced { 2 } else { 1 }))
}

/// Reads the header of a PPPoE session packet: version and type, code, session, length. A PPP
/// header without address and control follows.
pub(super) fn session(bytes: &[u8]) -> Step {
    if u8_at(bytes, 0)? != 0x11 || u8_at(bytes, 1)? != 0 {
        return Err(SkipReason::Malformed);
    }
    Ok((Header::Ppp, 6))
}

/// Reads a Cisco HDLC header: address, control, EtherType.
pub(super) fn read_cisco(bytes: &[u8]) -> Step {
    ether_type::without_length(u16_at(bytes, 2)?, 4)
}
