//! Ethernet II, IEEE 802.3 with 802.2 and SNAP; VLAN tags (802.1Q, 802.1ad) and backbone tags
//! (802.1ah); the header that an EtherType names.

use super::ether_type::{
    BACKBONE, IPV4, IPV6, MACSEC, MPLS_MULTICAST, MPLS_UNICAST, NSH, PPP, PPPOE_SESSION, TRANSPARENT_BRIDGING, is_vlan,
    named,
};
use super::header::{Header, Step, u16_at};
use super::unread::Unread;
use super::{macsec, nsh, ppp};

/// Destination, source, EtherType.
pub(super) fn read(bytes: &[u8]) -> Step {
    named(u16_at(bytes, 12)?, 14)
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
