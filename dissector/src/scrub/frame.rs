//! Replaces addresses and payload in one frame.
//!
//! This module reads the same headers as [`crate::ip`], but it also needs the offset of each
//! header. It does not reassemble fragments.

use std::ops::Range;

use crate::link::{self, Header};
use crate::packet::{Packet, TransportKind};

use super::addresses::AddressMap;
use super::checksum::{self, Field, Pseudo};
use super::counts::Counts;
use super::fill::FILL;
use super::fragments::SegmentPart;
use super::plan::{DirectionKey, Plan};
use super::{link_header, portmap, tcp_options};

/// Maximum number of headers, as in [`crate::ip`].
const MAX_HEADERS: usize = 32;

/// IP protocol numbers.
const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const IP_IN_IP: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const AUTHENTICATION: u8 = 51;
const ICMPV6: u8 = 58;
const DESTINATION_OPTIONS: u8 = 60;
const ETHER_IP: u8 = 97;
const MPLS: u8 = 137;

const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;
const UDP_LEN: usize = 8;
/// UDP port of ESP in UDP.
const ESP_PORT: u16 = 4500;
/// Length of the ICMP header that stays: type, code, checksum, and four octets that depend on the
/// type. If the type is not one of the next two constants, only the first four octets stay.
const ICMP_LEN: usize = 8;
/// Types of ICMP whose four octets contain no address: echo, errors with an MTU or a pointer.
const ICMP_TYPES: [u8; 5] = [0, 3, 8, 11, 12];
/// The same types of ICMPv6.
const ICMPV6_TYPES: [u8; 6] = [1, 2, 3, 4, 128, 129];
/// The option No-Operation of IPv4.
const IPV4_NO_OPERATION: u8 = 1;

/// The part of a frame that was not read yet.
#[derive(Debug, Clone, Copy)]
struct Rest {
    /// Offset of the first octet. `end` is the offset after the last captured octet.
    at: usize,
    end: usize,
    /// Number of octets on the wire from `at` on.
    wire_len: usize,
}

impl Rest {
    /// The part after `len` octets.
    fn after(self, len: usize) -> Self {
        Rest { at: (self.at + len).min(self.end), wire_len: self.wire_len.saturating_sub(len), ..self }
    }

    fn range(self) -> Range<usize> {
        self.at..self.end
    }

    fn is_complete(self) -> bool {
        self.end - self.at >= self.wire_len
    }
}

/// The state of the replacement in one frame.
pub(super) struct FrameReplacer<'a> {
    /// The captured octets.
    pub(super) original: &'a [u8],
    /// The octets to change. At the start, they are the captured octets.
    pub(super) out: &'a mut [u8],
    pub(super) addresses: &'a mut AddressMap,
    pub(super) plan: &'a mut Plan,
    pub(super) counts: &'a mut Counts,
    /// The TCP segment or UDP datagram that the dissector found in the frame.
    pub(super) packet: Option<Packet>,
    /// Whether the packet is a message of a port mapper.
    pub(super) is_port_mapper: bool,
    /// The part of a TCP segment, if the frame has a fragment of an IP packet.
    pub(super) part: Option<SegmentPart>,
    /// The checksums of the frame, the outermost first.
    pub(super) checksums: Vec<Field>,
}

impl FrameReplacer<'_> {
    /// Replaces addresses and payload, and writes the checksums.
    pub(super) fn replace(&mut self, link_type: u16, wire_len: usize) {
        let end = self.original.len();
        let mut next = Some((Header::Link(link_type), Rest { at: 0, end, wire_len: wire_len.max(end) }));
        for _ in 0..MAX_HEADERS {
            let Some((header, rest)) = next else { break };
            next = if header == Header::Ip { self.ip(rest) } else { self.link(header, rest) };
        }
        if let Some((_, rest)) = next {
            self.unread::<()>(rest);
        }
        // An outer checksum covers the inner checksums.
        for field in std::mem::take(&mut self.checksums).iter().rev() {
            field.write(self.original, self.out);
        }
    }

    fn u16(&self, at: usize) -> u16 {
        self.original.get(at..).and_then(<[u8]>::first_chunk::<2>).map_or(0, |field| u16::from_be_bytes(*field))
    }

    fn u8(&self, at: usize) -> u8 {
        self.original.get(at).copied().unwrap_or(0)
    }

    fn fill(&mut self, range: Range<usize>, value: u8) {
        if let Some(octets) = self.out.get_mut(range) {
            octets.fill(value);
        }
    }

    /// Replaces payload.
    fn payload(&mut self, range: Range<usize>) {
        self.fill(range.clone(), FILL);
        self.count(range);
    }

    /// Counts the changed octets of a payload.
    fn count(&mut self, range: Range<usize>) {
        if let (Some(before), Some(after)) = (self.original.get(range.clone()), self.out.get(range)) {
            let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
            self.counts.changed_octets += changed as u64;
        }
    }

    /// Replaces the rest of a frame that cannot be read further.
    fn unread<T>(&mut self, rest: Rest) -> Option<T> {
        self.counts.unread_frames += 1;
        self.payload(rest.range());
        None
    }

    fn link(&mut self, header: Header, rest: Rest) -> Option<(Header, Rest)> {
        let octets = self.original.get(rest.range()).unwrap_or_default();
        match link::step(header, octets) {
            Ok((next, len)) if len <= octets.len() => {
                if let Some(head) = self.out.get_mut(rest.at..rest.at + len) {
                    link_header::replace(header, head, self.addresses);
                }
                Some((next, rest.after(len)))
            }
            _ => {
                let octets = self.out.get_mut(rest.range()).unwrap_or_default();
                let len = link_header::replace_last(header, octets, self.addresses);
                self.unread(rest.after(len))
            }
        }
    }

    fn ip(&mut self, rest: Rest) -> Option<(Header, Rest)> {
        match self.original.get(rest.range()).and_then(|octets| octets.first()).map(|first| first >> 4) {
            Some(4) => self.ipv4(rest),
            Some(6) => self.ipv6(rest),
            _ => self.unread(rest),
        }
    }

    fn ipv4(&mut self, rest: Rest) -> Option<(Header, Rest)> {
        let at = rest.at;
        let head = usize::from(self.u8(at) & 0xf) * 4;
        let total = match usize::from(self.u16(at + 2)) {
            // Segmentation offload leaves a total length of 0.
            0 => rest.wire_len,
            total => total.min(rest.wire_len),
        };
        if head < IPV4_LEN || rest.end - at < head || total < head {
            // The first 12 octets are before the addresses.
            return self.unread(rest.after(12));
        }
        self.addresses.replace_ipv4(&mut self.out[at + 12..]);
        self.addresses.replace_ipv4(&mut self.out[at + 16..]);
        // Some options record the addresses of routers.
        self.fill(at + IPV4_LEN..at + head, IPV4_NO_OPERATION);
        self.checksums.push(Field { covered: at..at + head, at: at + 10, pseudo: None, is_complete: true });
        let end = rest.end.min(at + total);
        self.fill(end..rest.end, 0);
        let payload = Rest { at: at + head, end, wire_len: total - head };
        let protocol = self.u8(at + 9);
        let addresses = at + 12..at + 20;
        let position = self.u16(at + 6);
        if position & 0x3fff != 0 {
            return self.fragment(protocol, position & 0x1fff == 0, payload);
        }
        let (protocol, payload) = self.extensions(protocol, payload)?;
        self.transport(protocol, payload, addresses)
    }

    fn ipv6(&mut self, rest: Rest) -> Option<(Header, Rest)> {
        let at = rest.at;
        if rest.end - at < IPV6_LEN {
            return self.unread(rest.after(8));
        }
        self.addresses.replace_ipv6(&mut self.out[at + 8..]);
        self.addresses.replace_ipv6(&mut self.out[at + 24..]);
        let total = match usize::from(self.u16(at + 4)) {
            0 => rest.wire_len,
            len => (IPV6_LEN + len).min(rest.wire_len),
        };
        let end = rest.end.min(at + total);
        self.fill(end..rest.end, 0);
        let payload = Rest { at: at + IPV6_LEN, end: end.max(at + IPV6_LEN), wire_len: total.saturating_sub(IPV6_LEN) };
        let addresses = at + 8..at + IPV6_LEN;
        let (protocol, payload) = self.extensions(self.u8(at + 6), payload)?;
        if protocol != FRAGMENT {
            return self.transport(protocol, payload, addresses);
        }
        // A fragment header has eight octets: next header, reserved, offset and flags, number.
        let (next, position) = (self.u8(payload.at), self.u16(payload.at + 2));
        if payload.end - payload.at < 8 {
            return self.unread(payload);
        }
        let payload = payload.after(8);
        if position & 0xfff9 != 0 {
            return self.fragment(next, position & 0xfff8 == 0, payload);
        }
        let (protocol, payload) = self.extensions(next, payload)?;
        self.transport(protocol, payload, addresses)
    }

    /// Reads the extension headers, and replaces their contents. Returns the protocol after them.
    fn extensions(&mut self, mut protocol: u8, mut rest: Rest) -> Option<(u8, Rest)> {
        loop {
            let at = rest.at;
            let (next, words) = (self.u8(at), usize::from(self.u8(at + 1)));
            // The first octets of the header that stay, the length of the header, and the value of
            // the other octets.
            let (kept, len, value) = match protocol {
                // An option of zeros is padding.
                HOP_BY_HOP | DESTINATION_OPTIONS => (2, (words + 1) * 8, 0),
                ROUTING => (4, (words + 1) * 8, 0),
                AUTHENTICATION => (12, (words + 2) * 4, FILL),
                _ => return Some((protocol, rest)),
            };
            if rest.end - at < len.max(8) {
                return self.unread(rest.after(kept.min(2)));
            }
            self.fill(at + kept.min(len)..at + len, value);
            (protocol, rest) = (next, rest.after(len));
        }
    }

    /// Replaces the payload of a fragment. `is_first` is set if the fragment starts with the
    /// transport header.
    fn fragment(&mut self, protocol: u8, is_first: bool, rest: Rest) -> Option<(Header, Rest)> {
        let (kept, checksum_at) = match protocol {
            TCP if is_first => (TCP_LEN.max(usize::from(self.u8(rest.at + 12) >> 4) * 4), 16),
            UDP if is_first => (UDP_LEN, 6),
            _ => (0, 0),
        };
        let headers = self.part.map_or(0, |part| part.head.saturating_sub(part.offset));
        let kept_with_headers = kept.max(headers).min(rest.end - rest.at);
        let payload = rest.after(kept_with_headers).range();
        if kept > TCP_LEN
            && let Some(options) = self.out.get_mut(rest.at + TCP_LEN..payload.start)
        {
            tcp_options::clear(options);
        }
        if kept > 0 {
            // The checksum covers other fragments, too.
            self.fill(rest.at + checksum_at..(rest.at + checksum_at + 2).min(rest.end), 0);
        }
        let Some(SegmentPart { key, seq, head, offset }) = self.part else {
            self.counts.fragments += 1;
            self.payload(payload);
            return None;
        };
        let seq = seq.wrapping_add((offset + kept_with_headers).saturating_sub(head) as u32);
        self.segment(key, seq, payload);
        None
    }

    /// Replaces the payload of IP. `addresses` is the range of the addresses in the IP header.
    fn transport(&mut self, protocol: u8, rest: Rest, addresses: Range<usize>) -> Option<(Header, Rest)> {
        let before = checksum::sum(self.original.get(addresses.clone()).unwrap_or_default());
        let after = checksum::sum(self.out.get(addresses).unwrap_or_default());
        let pseudo = Pseudo { before, after, protocol };
        match protocol {
            TCP => self.tcp(rest, pseudo),
            UDP => self.udp(rest, pseudo),
            IP_IN_IP | IPV6_IN_IP => Some((Header::Ip, rest)),
            GRE => Some((Header::Gre, rest)),
            ETHER_IP => Some((Header::EtherIp, rest)),
            MPLS => Some((Header::Mpls, rest)),
            ICMP => self.icmp(rest, None, &ICMP_TYPES),
            ICMPV6 => self.icmp(rest, Some(pseudo), &ICMPV6_TYPES),
            _ => self.unread(rest),
        }
    }

    fn icmp(&mut self, rest: Rest, pseudo: Option<Pseudo>, types: &[u8]) -> Option<(Header, Rest)> {
        let kept = if types.contains(&self.u8(rest.at)) { ICMP_LEN } else { 4 };
        self.checksum(rest, 2, pseudo);
        self.unread(rest.after(kept))
    }

    /// Adds the checksum at offset `offset` of `rest`, if it was captured.
    fn checksum(&mut self, rest: Rest, offset: usize, pseudo: Option<Pseudo>) {
        let at = rest.at + offset;
        if at + 2 <= rest.end {
            self.checksums.push(Field { covered: rest.range(), at, pseudo, is_complete: rest.is_complete() });
        }
    }

    fn tcp(&mut self, rest: Rest, pseudo: Pseudo) -> Option<(Header, Rest)> {
        let at = rest.at;
        let head = usize::from(self.u8(at + 12) >> 4) * 4;
        self.checksum(rest, 16, Some(pseudo));
        if rest.end - at < TCP_LEN || head < TCP_LEN {
            return self.unread(rest.after(TCP_LEN));
        }
        let payload = rest.after(head).range();
        tcp_options::clear(&mut self.out[at + TCP_LEN..payload.start]);
        let ports = [self.u16(at), self.u16(at + 2)];
        let packet = self.packet.filter(|packet| [packet.src.port(), packet.dst.port()] == ports);
        match packet {
            Some(Packet { src, transport: TransportKind::Tcp { stream, seq, syn, .. }, .. }) => {
                self.segment((stream, src), seq.wrapping_add(u32::from(syn)), payload);
            }
            _ => self.payload(payload),
        }
        None
    }

    /// Replaces the payload of a segment. Its first octet has the sequence number `seq`.
    fn segment(&mut self, key: DirectionKey, seq: u32, payload: Range<usize>) {
        let original = self.original.get(payload.clone()).unwrap_or_default();
        self.plan.apply(key, seq, original, &mut self.out[payload.clone()]);
        self.count(payload);
    }

    fn udp(&mut self, rest: Rest, pseudo: Pseudo) -> Option<(Header, Rest)> {
        let at = rest.at;
        if rest.end - at < UDP_LEN {
            return self.unread(rest.after(UDP_LEN));
        }
        let wire_len = match usize::from(self.u16(at + 4)) {
            len @ UDP_LEN.. => len.min(rest.wire_len),
            _ => rest.wire_len,
        };
        let datagram = Rest { at, end: rest.end.min(at + wire_len), wire_len };
        self.fill(datagram.end..rest.end, 0);
        self.checksum(datagram, 6, Some(pseudo));
        let payload = datagram.after(UDP_LEN);
        let (from, to) = (self.u16(at), self.u16(at + 2));
        let octets = self.original.get(payload.range()).unwrap_or_default();
        let is_esp = (from == ESP_PORT || to == ESP_PORT) && octets.len() > 8 && octets[..4] != [0; 4];
        let tunnel = link::udp_tunnel(to).filter(|header| !is_esp && link::step(*header, octets).is_ok());
        if let Some(tunnel) = tunnel {
            return Some((tunnel, payload));
        }
        match self.packet {
            Some(packet) if self.is_port_mapper => {
                let ends = [packet.src.ip(), packet.dst.ip()];
                portmap::replace(&mut self.out[payload.range()], ends, self.addresses);
            }
            _ => self.payload(payload.range()),
        }
        None
    }
}
