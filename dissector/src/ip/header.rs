//! IPv4 and IPv6 headers up to the transport header, extension headers included.

use std::net::IpAddr;

use etherparse::{Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice};

use crate::link::Unread;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
/// Bytes of the fixed IPv6 header.
const IPV6_LEN: usize = 40;

/// The fields of the headers.
pub(super) struct Header {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    /// The protocol of the payload.
    pub(super) protocol: u8,
    /// Bytes before the payload.
    pub(super) head: usize,
    /// The payload's bytes on the wire.
    pub(super) payload_len: usize,
    /// The part of a packet in the payload, if it is not the complete packet.
    pub(super) fragment: Option<Piece>,
    /// IPv4 with Don't Fragment clear.
    pub(super) may_fragment: bool,
}

/// A fragment's place in its packet.
pub(super) struct Piece {
    pub(super) identification: u32,
    /// Bytes before it.
    pub(super) offset: usize,
    pub(super) more: bool,
}

/// Reads the headers of the packet that begins `octets` and has `wire_len` bytes on the wire,
/// padding of the link included.
pub(super) fn read(octets: &[u8], wire_len: usize) -> Result<Header, Unread> {
    match octets.first().ok_or(Unread::Truncated)? >> 4 {
        4 => ipv4(octets, wire_len),
        6 => ipv6(octets, wire_len),
        _ => Err(Unread::Malformed),
    }
}

/// The header's own errors: cut, or with invalid values.
fn why(octets: &[u8], least: usize) -> Unread {
    if octets.len() < least { Unread::Truncated } else { Unread::Malformed }
}

fn ipv4(octets: &[u8], wire_len: usize) -> Result<Header, Unread> {
    let least = usize::from(octets[0] & 0xf).max(5) * 4;
    let header = Ipv4HeaderSlice::from_slice(octets).map_err(|_| why(octets, least))?;
    let mut head = header.slice().len();
    // A total length of 0 is a result of segmentation offload.
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
    // A later fragment has no header to read; the first one is read when the packet is complete.
    if protocol == AUTHENTICATION && fragment.is_none() {
        (protocol, head) = authentication(octets, head)?;
    }
    Ok(Header {
        src: header.source_addr().into(),
        dst: header.destination_addr().into(),
        protocol,
        head,
        payload_len: total.checked_sub(head).ok_or(Unread::Malformed)?,
        fragment,
        may_fragment: !header.dont_fragment(),
    })
}

fn ipv6(octets: &[u8], wire_len: usize) -> Result<Header, Unread> {
    let header = Ipv6HeaderSlice::from_slice(octets).map_err(|_| why(octets, IPV6_LEN))?;
    // A payload length of 0 is a jumbogram or a result of segmentation offload.
    let end = match usize::from(header.payload_length()) {
        0 => wire_len,
        length => (IPV6_LEN + length).min(wire_len),
    };
    let mut protocol = header.next_header().0;
    let mut head = IPV6_LEN;
    let mut fragment = None;
    loop {
        let rest = octets.get(head..).unwrap_or(&[]);
        match protocol {
            FRAGMENT => {
                let header = Ipv6FragmentHeaderSlice::from_slice(rest).map_err(|_| Unread::Truncated)?;
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
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                let &[next, length, _, _, _, _, _, _, ..] = rest else { return Err(Unread::Truncated) };
                head += (usize::from(length) + 1) * 8;
                protocol = next;
            }
            AUTHENTICATION => (protocol, head) = authentication(octets, head)?,
            _ => break,
        }
    }
    Ok(Header {
        src: header.source_addr().into(),
        dst: header.destination_addr().into(),
        protocol,
        head,
        payload_len: end.checked_sub(head).ok_or(Unread::Malformed)?,
        fragment,
        may_fragment: false,
    })
}

/// The protocol after an authentication header at `at`, and where it begins (RFC 4302).
fn authentication(octets: &[u8], at: usize) -> Result<(u8, usize), Unread> {
    match octets.get(at..at + 8) {
        Some(&[next, words, ..]) => Ok((next, at + (usize::from(words) + 2) * 4)),
        _ => Err(Unread::Truncated),
    }
}
