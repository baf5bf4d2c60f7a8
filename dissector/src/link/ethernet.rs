//! Reads the headers of Ethernet II and of IEEE 802.3 with 802.2 and SNAP. Also reads VLAN tags
//! (802.1Q, 802.1ad), backbone tags (802.1ah), and the headers that an EtherType announces.

use super::ether_type::{
    BACKBONE, IPV4, IPV6, MACSEC, MPLS_MULTICAST, MPLS_UNICAST, NSH, PPP, PPPOE_SESSION, TRANSPARENT_BRIDGING, is_vlan,
    named,
};
use super::header::{Header, Step, u16_at};
use super::skip_reason::SkipReason;
use super::{macsec, nsh, ppp};

/// Reads an Ethernet header: destination, source, EtherType.
pub(super) fn read(bytes: &[u8]) -> Step {
    named(u16_at(bytes, 12)?, 14)
}

/// Reads the header that an EtherType announces.
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
        other => Err(SkipReason::EtherType(other)),
    }
}

/// Reads an IEEE 802.2 header that contains a SNAP header or the protocol number of IP.
pub(super) fn llc(bytes: &[u8]) -> Step {
    match bytes {
        // The organisations 0 and 0xf8 (802.1H) use EtherTypes as protocol numbers.
        [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, ..] => named(u16_at(bytes, 6)?, 8),
        [0x06, 0x06, 0x03, ..] => Ok((Header::Ip, 3)),
        [_, _, _, ..] => Err(SkipReason::Llc),
        _ => Err(SkipReason::Truncated),
    }
}
