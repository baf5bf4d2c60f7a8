//! Replaces the addresses in a port mapper message (Figure 17 of the SDP draft).

use std::net::IpAddr;
use std::ops::Range;

use super::addresses::{AddressMap, starts_with};
use super::fill::FILL;

/// Length of a message in octets.
const LEN: usize = 48;
/// Length in octets of a Request of the Linux daemon. A third address is at its end.
const LINUX_REQUEST: usize = 64;
/// The address fields: CpIPAddr, ApIPAddr, and the mapped address of the Linux daemon.
const ADDRESSES: [Range<usize>; 3] = [16..32, 32..48, 48..64];

/// Replaces the addresses in the message `octets`, and all octets after the message. `ends` are the
/// sender and the receiver of the message, before the replacement of their addresses.
pub(super) fn replace(octets: &mut [u8], ends: [IpAddr; 2], addresses: &mut AddressMap) {
    let version = octets.first().map_or(0, |first| first & 0xf);
    let len = if octets.len() == LINUX_REQUEST { LINUX_REQUEST } else { LEN };
    for at in ADDRESSES {
        if at.end > len {
            continue;
        }
        let end = at.end.min(octets.len());
        let Some(field) = octets.get_mut(at.start..end).filter(|field| !field.is_empty()) else { continue };
        if field.len() < 16 {
            field.fill(FILL);
        } else {
            replace_address(field, version, ends, addresses);
        }
    }
    if let Some(rest) = octets.get_mut(len..) {
        rest.fill(FILL);
    }
}

/// Replaces the address in an address field of 16 octets. The message has the IP version `version`.
/// If this version is wrong, the field is compared with the addresses of the sender and the
/// receiver.
fn replace_address(field: &mut [u8], version: u8, ends: [IpAddr; 2], addresses: &mut AddressMap) {
    let end = ends.into_iter().find(|end| starts_with(field, *end));
    let is_ipv4 = match version {
        4 => true,
        6 => false,
        _ => match end {
            Some(end) => end.is_ipv4(),
            None => return field.iter_mut().filter(|octet| **octet != 0).for_each(|octet| *octet = FILL),
        },
    };
    if is_ipv4 {
        addresses.replace_ipv4(field);
        // After an IPv4 address, all octets are zero.
        field[4..].iter_mut().filter(|octet| **octet != 0).for_each(|octet| *octet = FILL);
    } else {
        addresses.replace_ipv6(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_all_addresses_of_a_request_of_linux() {
        let mut addresses = AddressMap::default();
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let mut message = vec![0; 64];
        message[0] = 4;
        for (at, last) in [(16, 1), (32, 2), (48, 3)] {
            message[at..at + 4].copy_from_slice(&[10, 0, 0, last]);
        }
        replace(&mut message, ends, &mut addresses);
        for (at, last) in [(16, 1), (32, 2), (48, 3)] {
            assert_eq!(message[at..at + 5], [198, 18, 0, last, 0]);
        }
    }

    #[test]
    fn a_wrong_version_does_not_hide_the_address_of_the_sender() {
        let mut addresses = AddressMap::default();
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let mut message = vec![0; 60];
        message[0] = 5;
        message[16..20].copy_from_slice(&[10, 0, 0, 1]);
        message[32..36].copy_from_slice(&[10, 0, 0, 3]);
        message[50] = 9;
        replace(&mut message, ends, &mut addresses);
        assert_eq!(message[16..21], [198, 18, 0, 1, 0]);
        assert_eq!(message[32..37], [FILL, 0, 0, FILL, 0]);
        assert_eq!(message[48..], [FILL; 12]);
    }
}
