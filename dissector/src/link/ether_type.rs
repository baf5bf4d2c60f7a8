//! Defines EtherTypes, and the headers that they announce.

use super::header::{Header, Step, u16_at};
use super::skip_reason::SkipReason;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const PROVIDER_BRIDGING: u16 = 0x88a8;
/// EtherTypes that devices used for double VLAN tags before 802.1ad.
const QINQ: [u16; 2] = [0x9100, 0x9200];
/// 802.1ah: a service tag of four bytes, and then a complete Ethernet frame.
pub(super) const BACKBONE: u16 = 0x88e7;
pub(super) const TRANSPARENT_BRIDGING: u16 = 0x6558;
pub(super) const MPLS_UNICAST: u16 = 0x8847;
pub(super) const MPLS_MULTICAST: u16 = 0x8848;
pub(super) const PPPOE_SESSION: u16 = 0x8864;
pub(super) const PPP: u16 = 0x880b;
pub(super) const MACSEC: u16 = 0x88e5;
pub(super) const NSH: u16 = 0x894f;
/// The smallest EtherType. A smaller value in the same field is a length (IEEE 802.3, 3.2.6).
const SMALLEST_ETHER_TYPE: u16 = 0x0600;

/// Returns whether the EtherType announces a VLAN tag.
pub(super) fn is_vlan(ether_type: u16) -> bool {
    matches!(ether_type, VLAN | PROVIDER_BRIDGING) || QINQ.contains(&ether_type)
}

/// Returns the step to the header at offset `at`. `ether_type` is the value of the field that
/// announces this header: an EtherType or a length.
pub(super) fn named(ether_type: u16, at: usize) -> Step {
    match ether_type {
        IPV4 | IPV6 => Ok((Header::Ip, at)),
        length if length < SMALLEST_ETHER_TYPE => Ok((Header::Llc, at)),
        other => Ok((Header::EtherType(other), at)),
    }
}

/// Like [`named`], but for a field that is never a length.
pub(super) fn without_length(ether_type: u16, at: usize) -> Step {
    if ether_type < SMALLEST_ETHER_TYPE { Err(SkipReason::EtherType(ether_type)) } else { named(ether_type, at) }
}

/// Returns whether `bytes` look like an Ethernet frame with an IP packet. Use this function after
/// headers that do not announce the type of the next header.
pub(super) fn is_plausible(bytes: &[u8]) -> bool {
    let (mut kind, mut at) = (12, 14);
    for _ in 0..4 {
        match u16_at(bytes, kind) {
            Ok(IPV4) => return bytes.get(at).is_some_and(|first| first >> 4 == 4),
            Ok(IPV6) => return bytes.get(at).is_some_and(|first| first >> 4 == 6),
            Ok(VLAN | PROVIDER_BRIDGING) => (kind, at) = (at + 2, at + 4),
            _ => return false,
        }
    }
    false
}
