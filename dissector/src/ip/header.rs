//! Reads IPv4 and IPv6 headers, including extension headers.

use std::net::IpAddr;

use etherparse::{Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice};

use crate::link::SkipReason;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
/// Length of the fixed IPv6 header in bytes.
const IPV6_LEN: usize = 40;

/// The fields of the headers.
pub(super) struct Header {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    /// The protocol of the payload.
    pub(super) protocol: u8,
    /// Length of all headers before the payload, in bytes.
    pub(super) head: usize,
    /// Length of the payload on the wire in bytes.
    pub(super) payload_len: usize,
    /// Position of the payload in its packet, if the payload is a fragment.
    pub(super) fragment: Option<Piece>,
    /// Whether a router is allowed to fragment the packet: the packet is IPv4, and Don't Fragment
    /// is clear.
    pub(super) may_fragment: bool,
    /// The remaining hops: TTL of IPv4, Hop Limit of IPv6.
    pub(super) ttl: u8,
    /// The field Identification of IPv4.
    pub(super) identification: Option<u16>,
}

/// The position of a fragment in its packet.
pub(super) struct Piece {
    pub(super) identification: u32,
    /// Offset of the fragment in the payload of the packet, in bytes.
    pub(super) offset: usize,
    pub(super) more: bool,
}

/// Reads the headers of the packet at the start of `octets`. `wire_len` is the length of the packet
/// on the wire in bytes, including padding of the link layer.
pub(super) fn read(octets: &[u8], wire_len: usize) -> Result<Header, SkipReason> {
    match octets.first().ok_or(SkipReason::Truncated)? >> 4 {
        4 => ipv4(octets, wire_len),
        6 => ipv6(octets, wire_len),
        _ => Err(SkipReason::Malformed),
    }
}

/// Returns the reason why a header cannot be read: if `octets` have less than `least` bytes, the
/// header is truncated; otherwise it is malformed.
fn skip_reason(octets: &[u8], least: usize) -> SkipReason {
    if octets.len() < least { SkipReason::Truncated } else { SkipReason::Malformed }
}

fn ipv4(octets: &[u8], wire_len: usize) -> Result<Header, SkipReason> {
    let least = usize::from(octets[0] & 0xf).max(5) * 4;
    let header = Ipv4HeaderSlice::from_slice(octets).map_err(|_| skip_reason(octets, least))?;
    let mut head = header.slice().len();
    // Segmentation offload leaves a total length of 0.
    let total = match usize::from(header.total_len()) {
        0 => wire_len,
        total => total.min(wire_len),
    };
    let mut protocol = header.protocol().0;
    let fragment = header.is_fragmenting_payload().then(|| Piece {
        identification: u32::from(header.identification()),
        offset: usize::from(header.fragments_offset().value()) * 8,
        more: header.more_fragments(),
    });
    // Only the first fragment of a packet has the authentication header. So if the packet is
    // fragmented, `extensions` reads this header after the reassembly.
    if protocol == AUTHENTICATION && fragment.is_none() {
        (protocol, head) = authentication(octets, head)?;
    }
    Ok(Header {
        src: header.source_addr().into(),
        dst: header.destination_addr().into(),
        protocol,
        head,
        payload_len: total.checked_sub(head).ok_or(SkipReason::Malformed)?,
        fragment,
        may_fragment: !header.dont_fragment(),
        ttl: header.ttl(),
        identification: Some(header.identification()),
    })
}

fn ipv6(octets: &[u8], wire_len: usize) -> Result<Header, SkipReason> {
    let header = Ipv6HeaderSlice::from_slice(octets).map_err(|_| skip_reason(octets, IPV6_LEN))?;
    // The payload length is 0 in a jumbogram, and also after segmentation offload.
    let end = match usize::from(header.payload_length()) {
        0 => wire_len,
        length => (IPV6_LEN + length).min(wire_len),
    };
    let mut protocol = header.next_header().0;
    let mut head = IPV6_LEN;
    let mut fragment = None;
    loop {
        (protocol, head) = ipv6_extensions(octets, protocol, head)?;
        if protocol != FRAGMENT {
            break;
        }
        let rest = octets.get(head..).unwrap_or(&[]);
        let header = Ipv6FragmentHeaderSlice::from_slice(rest).map_err(|_| SkipReason::Truncated)?;
        protocol = header.next_header().0;
        head += 8;
        if header.is_fragmenting_payload() {
            fragment = Some(Piece {
                identification: header.identification(),
                offset: usize::from(header.fragment_offset().value()) * 8,
                more: header.more_fragments(),
            });
            break;
        }
    }
    Ok(Header {
        src: header.source_addr().into(),
        dst: header.destination_addr().into(),
        protocol,
        head,
        payload_len: end.checked_sub(head).ok_or(SkipReason::Malformed)?,
        fragment,
        may_fragment: false,
        ttl: header.hop_limit(),
        identification: None,
    })
}

/// Reads the headers between the IP header `ip` and the transport header of a reassembled packet.
/// `payload` is the reassembled payload. Returns the protocol after these headers, and their length
/// in bytes.
pub(super) fn extensions(ip: &Header, payload: &[u8]) -> Result<(u8, usize), SkipReason> {
    match ip.src {
        IpAddr::V4(_) if ip.protocol == AUTHENTICATION => authentication(payload, 0),
        IpAddr::V4(_) => Ok((ip.protocol, 0)),
        IpAddr::V6(_) => ipv6_extensions(payload, ip.protocol, 0),
    }
}

/// Reads the IPv6 extension headers from offset `head` on. The first of these headers has the
/// number `protocol`. Returns the number and the offset of the first header that is not an
/// extension header, or is a fragment header.
fn ipv6_extensions(octets: &[u8], mut protocol: u8, mut head: usize) -> Result<(u8, usize), SkipReason> {
    loop {
        match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                let rest = octets.get(head..).unwrap_or(&[]);
                let &[next, length, _, _, _, _, _, _, ..] = rest else { return Err(SkipReason::Truncated) };
                head += (usize::from(length) + 1) * 8;
                protocol = next;
            }
            AUTHENTICATION => (protocol, head) = authentication(octets, head)?,
            _ => return Ok((protocol, head)),
        }
    }
}

/// Returns the protocol after the authentication header at offset `at`, and the offset after this
/// header (RFC 4302).
fn authentication(octets: &[u8], at: usize) -> Result<(u8, usize), SkipReason> {
    match octets.get(at..at + 8) {
        Some(&[next, words, ..]) => Ok((next, at + (usize::from(words) + 2) * 4)),
        _ => Err(SkipReason::Truncated),
    }
}
