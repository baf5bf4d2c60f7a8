//! Replaces what identifies a host in the headers before an IP header: MAC addresses, and the names
//! and other facts that a capture program adds.

use crate::link::Header;
use crate::link_type;

use super::addresses::AddressMap;

/// EtherTypes.
const ARP: u16 = 0x0806;
const REVERSE_ARP: u16 = 0x8035;
const MACSEC: u16 = 0x88e5;
const NSH: u16 = 0x894f;
/// Length of a Prism header.
const PRISM_LEN: usize = 144;
/// Length of the IPoIB header, after the address or the global route header.
const IPOIB_LEN: usize = 4;
/// Number of the attribute of netfilter log that contains the packet.
const NFLOG_PAYLOAD: u16 = 9;

/// Replaces the addresses and names in the header `octets`. The header is complete.
pub(super) fn replace(header: Header, octets: &mut [u8], addresses: &mut AddressMap) {
    match header {
        Header::Link(link_type::ETHERNET) | Header::Ethernet => macs(octets, &[0, 6], addresses),
        Header::Link(link_type::LINUX_SLL) => cooked(octets, 5, 6, addresses),
        Header::Link(link_type::LINUX_SLL2) => cooked(octets, 11, 12, addresses),
        Header::Link(link_type::PPI) => clear(octets, 8, usize::MAX),
        Header::Link(link_type::PKTAP) => clear(octets, 12, usize::MAX),
        // The name of the device.
        Header::Link(link_type::PRISM) if octets.len() == PRISM_LEN => clear(octets, 8, 24),
        Header::Link(link_type::NFLOG) => nflog(octets),
        Header::Link(link_type::IPOIB) => {
            let end = octets.len().saturating_sub(IPOIB_LEN);
            clear(octets, 0, end);
        }
        // A frame between access points has a fourth address.
        Header::Wifi { .. } if octets.get(1).is_some_and(|flags| flags & 3 == 3) => {
            macs(octets, &[4, 10, 16, 24], addresses);
        }
        Header::Wifi { .. } => macs(octets, &[4, 10, 16], addresses),
        // The identifier of the channel starts with a MAC address.
        Header::EtherType(MACSEC) if octets.first().is_some_and(|control| control & 0x20 != 0) => {
            macs(octets, &[6], addresses);
        }
        Header::EtherType(NSH) | Header::Geneve => clear(octets, 8, usize::MAX),
        // The checksum of GRE covers the packet.
        Header::Gre if octets.first().is_some_and(|flags| flags & 0x80 != 0) => clear(octets, 4, 6),
        _ => {}
    }
}

/// Replaces the addresses and names in a header that cannot be read further. `octets` are the rest
/// of the frame. Returns the number of octets at the start that belong to the header.
pub(super) fn replace_last(header: Header, octets: &mut [u8], addresses: &mut AddressMap) -> usize {
    let len = match header {
        Header::EtherType(ARP | REVERSE_ARP) => return arp(octets, addresses),
        Header::Link(link_type::ETHERNET) | Header::Ethernet => 14,
        Header::Link(link_type::LINUX_SLL) => 16,
        Header::Link(link_type::LINUX_SLL2) => 20,
        Header::Wifi { .. } => 24,
        Header::EtherType(MACSEC) if octets.first().is_some_and(|control| control & 0x20 != 0) => 14,
        Header::EtherType(MACSEC) => 6,
        Header::Llc => 3,
        Header::Ppp if octets.starts_with(&[0xff, 0x03]) => 4,
        Header::Ppp => 2,
        _ => 0,
    };
    match octets.get_mut(..len) {
        Some(head) => {
            replace(header, head, addresses);
            len
        }
        None => 0,
    }
}

/// Replaces the MAC addresses at these offsets.
fn macs(octets: &mut [u8], offsets: &[usize], addresses: &mut AddressMap) {
    for at in offsets {
        if let Some(field) = octets.get_mut(*at..) {
            addresses.replace_mac(field);
        }
    }
}

/// Sets the octets from `start` to `end` to zero. `end` is at most the length of `octets`.
fn clear(octets: &mut [u8], start: usize, end: usize) {
    let end = end.min(octets.len());
    if let Some(field) = octets.get_mut(start..end) {
        field.fill(0);
    }
}

/// Replaces the address in the header of a Linux "cooked" capture. The length of the address is at
/// offset `len_at`. The field of the address has eight octets.
fn cooked(octets: &mut [u8], len_at: usize, at: usize, addresses: &mut AddressMap) {
    let is_mac = octets.get(len_at) == Some(&6);
    if is_mac {
        macs(octets, &[at], addresses);
    }
    clear(octets, if is_mac { at + 6 } else { at }, at + 8);
}

/// Sets the values of all attributes of netfilter log to zero, for example the user and the prefix.
/// The header ends with the start of the attribute that contains the packet.
fn nflog(octets: &mut [u8]) {
    // The byte order of the attributes is unknown, as in the module that reads the header.
    for read in [u16::from_le_bytes, u16::from_be_bytes] {
        let mut values = Vec::new();
        let mut at = 4;
        while let Some(&[a, b, c, d]) = octets.get(at..).and_then(<[u8]>::first_chunk::<4>) {
            let len = usize::from(read([a, b]));
            if read([c, d]) & 0x7fff == NFLOG_PAYLOAD && at + 4 == octets.len() {
                values.into_iter().for_each(|(start, end)| clear(octets, start, end));
                return;
            }
            if len < 4 {
                break;
            }
            values.push((at + 4, at + len));
            at += len.next_multiple_of(4);
        }
    }
}

/// Replaces the addresses of an ARP message (RFC 826) for Ethernet and IPv4. Returns the length of
/// the part that stays.
fn arp(octets: &mut [u8], addresses: &mut AddressMap) -> usize {
    const FIXED: usize = 8;
    const LEN: usize = 28;
    let is_ethernet = octets.get(4..6).is_some_and(|lengths| lengths == [6, 4]);
    let Some(message) = octets.get_mut(..LEN).filter(|_| is_ethernet) else { return FIXED.min(octets.len()) };
    macs(message, &[8], addresses);
    addresses.replace_ipv4(&mut message[14..18]);
    macs(message, &[18], addresses);
    addresses.replace_ipv4(&mut message[24..28]);
    LEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn replaced(header: Header, octets: &str) -> Vec<u8> {
        let mut octets = hex(octets);
        replace(header, &mut octets, &mut AddressMap::default());
        octets
    }

    #[test]
    fn replaces_the_addresses_of_each_header() {
        let ethernet = replaced(Header::Ethernet, "aabbccddee01 aabbccddee02 0800");
        assert_eq!(ethernet, hex("020000000001 020000000002 0800"));
        let cooked = replaced(Header::Link(link_type::LINUX_SLL), "0000 0001 0006 aabbccddee01 1234 0800");
        assert_eq!(cooked, hex("0000 0001 0006 020000000001 0000 0800"));
        let wifi = replaced(Header::Wifi { padded: false }, "0801 0000 aabbccddee01 aabbccddee02 aabbccddee01 1230");
        assert_eq!(wifi, hex("0801 0000 020000000001 020000000002 020000000001 1230"));
    }

    /// The attributes are a prefix ("lab", number 10) and the packet (number 9).
    #[test]
    fn clears_the_attributes_of_netfilter_log() {
        let octets = replaced(Header::Link(link_type::NFLOG), "02000000 0800 0a00 6c616200 0800 0900");
        assert_eq!(octets, hex("02000000 0800 0a00 00000000 0800 0900"));
    }

    #[test]
    fn replaces_the_addresses_of_arp() {
        let mut octets = hex("0001 0800 06 04 0001 aabbccddee01 0a000001 000000000000 0a000002 7777");
        let len = replace_last(Header::EtherType(ARP), &mut octets, &mut AddressMap::default());
        assert_eq!(len, 28);
        assert_eq!(octets, hex("0001 0800 06 04 0001 020000000001 c6120001 000000000000 c6120002 7777"));
    }
}
