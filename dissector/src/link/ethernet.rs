//! Ethernet II, IEEE 802.3 with 802.2 and SNAP; VLAN tags (802.1Q, 802.1ad) and backbone tags
//! (802.1ah); what an EtherType names.

use super::{Header, Step, Unread, macsec, nsh, ppp, u16_at};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const PROVIDER_BRIDGING: u16 = 0x88a8;
/// Tags of double tagging before 802.1ad.
const QINQ: [u16; 2] = [0x9100, 0x9200];
/// 802.1ah: a service tag of four bytes, then a complete Ethernet frame.
pub(super) const BACKBONE: u16 = 0x88e7;
pub(super) const TRANSPARENT_BRIDGING: u16 = 0x6558;
const MPLS_UNICAST: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
const PPP: u16 = 0x880b;
const MACSEC: u16 = 0x88e5;
const NSH: u16 = 0x894f;
/// A smaller value is a length (IEEE 802.3, 3.2.6).
const SMALLEST_ETHER_TYPE: u16 = 0x0600;

/// Does the EtherType announce a VLAN tag?
pub(super) fn is_vlan(ether_type: u16) -> bool {
    matches!(ether_type, VLAN | PROVIDER_BRIDGING) || QINQ.contains(&ether_type)
}

/// Destination, source, EtherType.
pub(super) fn read(bytes: &[u8]) -> Step {
    named(u16_at(bytes, 12)?, 14)
}

/// What an EtherType or length names; it begins at `at`.
pub(super) fn named(ether_type: u16, at: usize) -> Step {
    match ether_type {
        IPV4 | IPV6 => Ok((Header::Ip, at)),
        length if length < SMALLEST_ETHER_TYPE => Ok((Header::Llc, at)),
        other => Ok((Header::EtherType(other), at)),
    }
}

/// The header that an EtherType names, other than IP.
pub(super) fn payload(ether_type: u16, bytes: &[u8]) -> Step {
    match ether_type {
        IPV4 | IPV6 => Ok((Header::Ip, 0)),
        tag if is_vlan(tag) => named(u16_at(bytes, 2)?, 4),
        BACKBONE => Ok((Header::Ethernet, 4)),
        TRANSPARENT_BRIDGING => Ok((Header::Ethernet, 0)),
        MPLS_UNICAST | MPLS_MULTICAST => Ok((Header::Mpls, 0)),
        PPPOE_SESSION => ppp::session(bytes),
        PPP => Ok((Header::Ppp, 0)),
        MACSEC => macsec::read(bytes),
        NSH => nsh::read(bytes),
        other => Err(Unread::EtherType(other)),
    }
}

/// IEEE 802.2: SNAP, and IP under its own number.
pub(super) fn llc(bytes: &[u8]) -> Step {
    match bytes {
        // Organisations 0 and 0xf8 (802.1H) number protocols by EtherType.
        [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, ..] => named(u16_at(bytes, 6)?, 8),
        [0x06, 0x06, 0x03, ..] => Ok((Header::Ip, 3)),
        [_, _, _, ..] => Err(Unread::Llc),
        _ => Err(Unread::Truncated),
    }
}

/// Is this an Ethernet frame with an IP packet, as far as its EtherTypes show? For positions where
/// no field names the type.
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
