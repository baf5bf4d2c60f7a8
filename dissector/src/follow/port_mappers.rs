//! Decides which UDP endpoints are port mappers. Any program can use UDP port 3935, for example a
//! DNS client that got this port at random.
//!
//! An endpoint with port 3935 counts as a port mapper as soon as it has sent or received a port
//! mapper message. At most [`MAX_PORT_MAPPERS`] endpoints are recorded.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use weft_core::wire::portmap::{RawMessage, UDP_PORT};

use crate::ip::Datagram;

/// Maximum number of port mappers that are recorded.
const MAX_PORT_MAPPERS: usize = 4096;
/// Length in octets of a Request of the Linux daemon. The daemon appends an address to the Request.
const LINUX_REQUEST: usize = 64;
/// Offset of the connecting peer's address in a message (Figure 17 of the SDP draft).
const CP_IP_ADDR: usize = 16;
/// Offset of the accepting peer's address.
const AP_IP_ADDR: usize = 32;

/// The port mappers of a capture.
#[derive(Debug, Default)]
pub(crate) struct PortMappers(HashSet<SocketAddr>);

impl PortMappers {
    /// Returns whether a datagram is from or to a port mapper. This is the case if this datagram,
    /// or an earlier datagram of the same endpoint, is a port mapper message.
    pub(crate) fn has_endpoint_of(&mut self, datagram: &Datagram<'_>) -> bool {
        let endpoints = [datagram.src, datagram.dst].into_iter().filter(|endpoint| endpoint.port() == UDP_PORT);
        if !is_message(datagram) {
            return endpoints.into_iter().any(|endpoint| self.0.contains(&endpoint));
        }
        let mut is_port_mapper = false;
        for endpoint in endpoints {
            is_port_mapper = true;
            if self.0.len() < MAX_PORT_MAPPERS {
                self.0.insert(endpoint);
            }
        }
        is_port_mapper
    }
}

/// Returns whether a datagram is a port mapper message. A datagram with a wrong length or version
/// also counts, if an address field has the address of the datagram's sender or receiver.
fn is_message(datagram: &Datagram<'_>) -> bool {
    let length = datagram.wire_len as usize;
    let head = datagram.octets.first().map(|first| (first >> 6, first & 0xf));
    let right = (length == RawMessage::LEN || length == LINUX_REQUEST) && matches!(head, Some((0, 4 | 6)));
    right || [CP_IP_ADDR, AP_IP_ADDR].into_iter().any(|at| contains_endpoint_address(datagram, at))
}

/// Returns whether the datagram contains the address of its sender or receiver at offset `at`.
fn contains_endpoint_address(datagram: &Datagram<'_>, at: usize) -> bool {
    let Some(field) = datagram.octets.get(at..) else { return false };
    [datagram.src.ip(), datagram.dst.ip()].into_iter().any(|address| match address {
        IpAddr::V4(address) => field.starts_with(&address.octets()),
        IpAddr::V6(address) => field.starts_with(&address.octets()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_number::FrameNumber;
    use crate::testing::hex;

    fn from(port: u16, octets: &[u8]) -> Datagram<'_> {
        let (src, dst) = (SocketAddr::from(([10, 0, 0, 2], port)), SocketAddr::from(([10, 0, 0, 1], 53)));
        Datagram {
            frame: FrameNumber::FIRST,
            time: 1,
            src,
            dst,
            octets,
            wire_len: u32::try_from(octets.len()).unwrap(),
            offset: None,
        }
    }

    /// Returns a message with CpIPAddr 10.0.0.2 and ApIPAddr 10.0.0.9.
    fn message(first: u8) -> Vec<u8> {
        let zeros = "00".repeat(12);
        hex(&format!("{first:02x}00 0000 1389 9c41 1122334455667788 0a000002 {zeros} 0a000009 {zeros}"))
    }

    #[test]
    fn a_port_mapper_is_known_by_its_messages() {
        // This is a DNS query for the address of example.com (RFC 1035 section 4.1).
        let query = hex("2a2a 0100 0001 0000 0000 0000 07 6578616d706c65 03 636f6d 00 0001 0001");
        let mut port_mappers = PortMappers::default();
        assert!(!port_mappers.has_endpoint_of(&from(3935, &query)));
        assert!(port_mappers.has_endpoint_of(&from(3935, &message(0x04))));
        assert!(port_mappers.has_endpoint_of(&from(3935, &query)), "now the endpoint counts as a port mapper");
        assert!(!port_mappers.has_endpoint_of(&from(3936, &message(0x04))));
    }

    #[test]
    fn a_wrong_message_that_names_its_sender_is_one() {
        // The first message has Ver 1, the second message has IPV 5, and the third message is too
        // short.
        for octets in [&message(0x44)[..], &message(0x05), &message(0x04)[..47]] {
            assert!(PortMappers::default().has_endpoint_of(&from(3935, octets)));
        }
        let mut other = message(0x44);
        other[16] = 11;
        assert!(!PortMappers::default().has_endpoint_of(&from(3935, &other)));
    }
}
