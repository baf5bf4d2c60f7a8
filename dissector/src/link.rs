//! From a frame to its IP packet: Ethernet (VLAN, QinQ), Linux cooked v1 and v2, BSD loopback, raw IP.
//!
//! Addresses and checksums of the link are not looked at: nothing above depends on them.

use std::ops::Range;

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const LINUX_SLL2: u16 = 276;
/// Raw IP under its several numbers.
const RAW: [u16; 5] = [12, 14, 101, 228, 229];

/// Can frames of this link type be looked into? Numbers as <https://www.tcpdump.org/linktypes.html>.
#[must_use]
pub fn reads_link_type(link_type: u16) -> bool {
    matches!(link_type, NULL | ETHERNET | LOOP | LINUX_SLL | LINUX_SLL2) || RAW.contains(&link_type)
}

/// Where the IP header begins; `None` when the frame carries none, or its link type is unknown.
#[must_use]
pub(crate) fn ip_offset(link_type: u16, frame: &[u8]) -> Option<usize> {
    match link_type {
        ETHERNET => behind_tags(frame, 12..14, 14),
        LINUX_SLL => behind_tags(frame, 14..16, 16),
        LINUX_SLL2 => behind_tags(frame, 0..2, 20),
        NULL | LOOP => Some(4),
        raw if RAW.contains(&raw) => Some(0),
        _ => None,
    }
}

/// Follows VLAN tags: the EtherType stands at `kind`, what it describes at `end`.
fn behind_tags(frame: &[u8], mut kind: Range<usize>, mut end: usize) -> Option<usize> {
    use etherparse::ether_type as known;
    loop {
        let octets = frame.get(kind.clone())?;
        let ethertype = etherparse::EtherType(u16::from_be_bytes([octets[0], octets[1]]));
        match ethertype {
            known::IPV4 | known::IPV6 => return (frame.len() >= end).then_some(end),
            known::VLAN_TAGGED_FRAME | known::PROVIDER_BRIDGING | known::VLAN_DOUBLE_TAGGED_FRAME => {
                kind = end + 2..end + 4;
                end += 4;
            }
            _ => return None,
        }
    }
}
