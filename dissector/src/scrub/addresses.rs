//! [`AddressMap`]: maps addresses to reserved addresses, in the order in which the addresses first
//! appear.
//!
//! The first IPv4 address becomes 198.18.0.1, the second 198.18.0.2, and so on. In the result, the
//! reserved addresses appear in the same order. So if the result is mapped again, each address
//! becomes itself.
//!
//! Addresses that identify no host keep their value: unspecified, loopback, broadcast and multicast
//! addresses. Some multicast addresses contain the last bytes of the address of a host. These bytes
//! become zero.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network of the first 131,071 IPv4 addresses: 198.18.0.0/15, reserved for benchmarks (RFC
/// 2544).
const BENCHMARK: u32 = 0xc612_0000;
const BENCHMARK_SIZE: u32 = 1 << 17;
/// The network of all further IPv4 addresses: 240.0.0.0/4, which is reserved.
const RESERVED: u32 = 0xf000_0000;
/// The network of IPv6 addresses: 2001:db8::/32, reserved for documentation (RFC 3849). Link-local
/// addresses stay link-local.
const DOCUMENTATION: [u8; 4] = [0x20, 0x01, 0x0d, 0xb8];
/// The first bytes of a link-local IPv6 address.
const LINK_LOCAL: [u8; 4] = [0xfe, 0x80, 0, 0];
/// The first bytes of an IPv4-mapped IPv6 address.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
/// The first bytes of a solicited-node multicast address (RFC 4291 section 2.7.1). The last three
/// bytes of an address of a host follow.
const SOLICITED_NODE: [u8; 13] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];
/// The first bytes of the MAC address of a solicited-node multicast address.
const SOLICITED_NODE_MAC: [u8; 3] = [0x33, 0x33, 0xff];
/// The bit that marks a MAC address as the address of a group.
const GROUP: u8 = 1;
/// The first two bytes of a mapped MAC address. The first byte marks it as locally administered.
const LOCAL: [u8; 2] = [0x02, 0];

/// The mapped addresses.
#[derive(Debug, Default)]
pub(super) struct AddressMap {
    ipv4: HashMap<[u8; 4], u32>,
    global: HashMap<[u8; 16], u32>,
    link_local: HashMap<[u8; 16], u32>,
    mac: HashMap<[u8; 6], u32>,
}

/// The number of `key`: 1 for the first key, 2 for the second, and so on.
fn number<K: std::hash::Hash + Eq>(map: &mut HashMap<K, u32>, key: K) -> u32 {
    let next = u32::try_from(map.len()).unwrap_or(u32::MAX).saturating_add(1);
    *map.entry(key).or_insert(next)
}

impl AddressMap {
    /// Numbers of different IPv4, IPv6 and MAC addresses.
    pub(super) fn counts(&self) -> [u64; 3] {
        [self.ipv4.len(), self.global.len() + self.link_local.len(), self.mac.len()].map(|count| count as u64)
    }

    /// The address that replaces an IPv4 address.
    pub(super) fn ipv4(&mut self, address: [u8; 4]) -> [u8; 4] {
        let ip = Ipv4Addr::from(address);
        if ip.is_unspecified() || ip.is_loopback() || ip.is_broadcast() || ip.is_multicast() {
            return address;
        }
        let number = number(&mut self.ipv4, address);
        let mapped = if number < BENCHMARK_SIZE { BENCHMARK | number } else { RESERVED | number };
        mapped.to_be_bytes()
    }

    /// The address that replaces an IPv6 address.
    pub(super) fn ipv6(&mut self, address: [u8; 16]) -> [u8; 16] {
        let mut mapped = address;
        let ip = Ipv6Addr::from(address);
        if address.starts_with(&SOLICITED_NODE) {
            mapped[13..].fill(0);
            return mapped;
        }
        if ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() {
            return address;
        }
        if address.starts_with(&MAPPED)
            && let Some(ipv4) = address.last_chunk::<4>()
        {
            mapped[12..].copy_from_slice(&self.ipv4(*ipv4));
            return mapped;
        }
        let (prefix, number) = if ip.is_unicast_link_local() {
            (LINK_LOCAL, number(&mut self.link_local, address))
        } else {
            (DOCUMENTATION, number(&mut self.global, address))
        };
        mapped = [0; 16];
        mapped[..4].copy_from_slice(&prefix);
        mapped[12..].copy_from_slice(&number.to_be_bytes());
        mapped
    }

    /// The address that replaces a MAC address.
    pub(super) fn mac(&mut self, address: [u8; 6]) -> [u8; 6] {
        if address.starts_with(&SOLICITED_NODE_MAC) {
            return [0x33, 0x33, 0xff, 0, 0, 0];
        }
        if address == [0; 6] || address[0] & GROUP != 0 {
            return address;
        }
        let [a, b, c, d] = number(&mut self.mac, address).to_be_bytes();
        [LOCAL[0], LOCAL[1], a, b, c, d]
    }

    /// Replaces the address at the start of `field`. Does nothing if `field` is too short.
    pub(super) fn replace_ipv4(&mut self, field: &mut [u8]) {
        if let Some(address) = field.first_chunk_mut::<4>() {
            *address = self.ipv4(*address);
        }
    }

    /// Replaces the address at the start of `field`. Does nothing if `field` is too short.
    pub(super) fn replace_ipv6(&mut self, field: &mut [u8]) {
        if let Some(address) = field.first_chunk_mut::<16>() {
            *address = self.ipv6(*address);
        }
    }

    /// Replaces the address at the start of `field`. Does nothing if `field` is too short.
    pub(super) fn replace_mac(&mut self, field: &mut [u8]) {
        if let Some(address) = field.first_chunk_mut::<6>() {
            *address = self.mac(*address);
        }
    }
}

/// Returns whether `field` starts with the octets of `address`.
pub(super) fn starts_with(field: &[u8], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => field.starts_with(&address.octets()),
        IpAddr::V6(address) => field.starts_with(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(text: &str) -> [u8; 16] {
        text.parse::<Ipv6Addr>().unwrap().octets()
    }

    #[test]
    fn numbers_addresses_in_order_of_appearance() {
        let mut map = AddressMap::default();
        let inputs = [[10, 0, 0, 9], [192, 168, 1, 1], [10, 0, 0, 9], [198, 18, 0, 1]];
        let mapped = inputs.map(|address| map.ipv4(address));
        assert_eq!(mapped, [[198, 18, 0, 1], [198, 18, 0, 2], [198, 18, 0, 1], [198, 18, 0, 3]]);
        assert_eq!(map.mac([0xb8, 0x59, 0x9f, 1, 2, 3]), [2, 0, 0, 0, 0, 1]);
        assert_eq!(map.ipv6(v6("2a02:1::9")), v6("2001:db8::1"));
        assert_eq!(map.ipv6(v6("fe80::ba59:9fff:fe01:203")), v6("fe80::1"));
        assert_eq!(map.ipv6(v6("::ffff:10.0.0.9")), v6("::ffff:198.18.0.1"));
        assert_eq!(map.counts(), [3, 2, 1]);
    }

    #[test]
    fn a_second_map_changes_nothing() {
        let mut first = AddressMap::default();
        let mut mapped = Vec::new();
        for number in 0..300_u16 {
            let [high, low] = number.to_be_bytes();
            mapped.push(first.ipv4([10, 1, high, low]));
        }
        let mut second = AddressMap::default();
        for address in mapped {
            assert_eq!(second.ipv4(address), address);
        }
    }

    #[test]
    fn addresses_of_no_host_stay() {
        let mut map = AddressMap::default();
        for address in [[0; 4], [127, 0, 0, 1], [255; 4], [224, 0, 0, 251]] {
            assert_eq!(map.ipv4(address), address);
        }
        for address in ["::", "::1", "ff02::1"].map(v6) {
            assert_eq!(map.ipv6(address), address);
        }
        assert_eq!(map.ipv6(v6("ff02::1:ff01:203")), v6("ff02::1:ff00:0"));
        for address in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            assert_eq!(map.mac(address), address);
        }
        assert_eq!(map.mac([0x33, 0x33, 0xff, 1, 2, 3]), [0x33, 0x33, 0xff, 0, 0, 0]);
        assert_eq!(map.counts(), [0, 0, 0]);
    }
}
