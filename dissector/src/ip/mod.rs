//! From an IP packet to a TCP segment or UDP datagram: IPv4 and IPv6, with fragments put together and extension headers passed.
//!
//! Checksums, tunnels and options are not looked at. What the snap length cut off stays known by its length.

mod fragments;

use std::net::{IpAddr, SocketAddr};

use etherparse::{Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, TcpHeaderSlice, UdpHeaderSlice};

use crate::link;
use crate::source::Frame;
use fragments::{Fragments, Key};

/// With segmentation offload a captured packet can be longer than any on the wire; a longer one is a damaged length.
const LONGEST_PACKET: usize = 1 << 20;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What a frame carried.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport<'a> {
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// A UDP datagram.
    Udp(Datagram<'a>),
}

/// A TCP segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    /// The frame that completed it.
    pub frame: u64,
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// ACK.
    pub ack_flag: bool,
    /// Acknowledgement number; says something only with ACK.
    pub ack: u32,
    /// The window field, not scaled.
    pub window: u16,
    /// The TCP options, as far as they were captured.
    pub options: &'a [u8],
    /// Did the snap length cut the options?
    pub options_cut: bool,
    /// May the IP packet be fragmented on its way (IPv4 with Don't Fragment clear)?
    pub may_fragment: bool,
    /// The payload octets that were captured.
    pub octets: &'a [u8],
    /// Payload octets on the wire; at least `octets.len()`.
    pub wire_len: u32,
    /// Offset of the payload in the frame's octets; `None` when the packet was put together from fragments.
    pub offset: Option<u32>,
}

/// A UDP datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datagram<'a> {
    /// The frame that completed it.
    pub frame: u64,
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// The payload octets that were captured.
    pub octets: &'a [u8],
    /// Payload octets on the wire.
    pub wire_len: u32,
    /// Offset of the payload in the frame's octets; `None` when the packet was put together from fragments.
    pub offset: Option<u32>,
}

/// An IP payload of a known protocol.
struct Packet<'a> {
    protocol: u8,
    src: IpAddr,
    dst: IpAddr,
    octets: &'a [u8],
    wire_len: usize,
    /// Offset of `octets` in the frame.
    offset: Option<usize>,
    /// IPv4 with Don't Fragment clear.
    may_fragment: bool,
}

/// Reads IP packets out of frames; keeps the fragments that wait for others.
#[derive(Default)]
pub(crate) struct IpReader {
    fragments: Fragments,
}

impl IpReader {
    /// The TCP segment or UDP datagram that `frame` carries or completes.
    pub(crate) fn read<'a>(&'a mut self, frame: &Frame<'a>) -> Option<Transport<'a>> {
        let at = link::ip_offset(frame.link_type, frame.octets)?;
        let ip = frame.octets.get(at..).filter(|ip| ip.len() >= 20)?;
        let wire = (frame.wire_len as usize).saturating_sub(at).max(ip.len()).min(LONGEST_PACKET);
        let packet = match ip[0] >> 4 {
            4 => self.ipv4(frame.time, ip, wire, at),
            6 => self.ipv6(frame.time, ip, wire, at),
            _ => None,
        }?;
        match packet.protocol {
            TCP => segment(frame, &packet),
            UDP => datagram(frame, &packet),
            _ => None,
        }
    }

    fn ipv4<'a>(&'a mut self, time: u64, ip: &'a [u8], wire: usize, at: usize) -> Option<Packet<'a>> {
        let header = Ipv4HeaderSlice::from_slice(ip).ok()?;
        let head = header.slice().len();
        // A total length of 0 is what segmentation offload leaves behind.
        let total = match usize::from(header.total_len()) {
            0 => wire,
            total => total.min(wire),
        };
        let wire_len = total.checked_sub(head)?;
        let octets = &ip[head..total.min(ip.len()).max(head)];
        let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
        let protocol = header.protocol().0;
        if header.is_fragmenting_payload() {
            let key = Key { src, dst, identification: u32::from(header.identification()), protocol };
            let offset = usize::from(header.fragments_offset().value()) * 8;
            let (octets, wire_len) =
                self.fragments.add(time, key, offset, octets, wire_len, header.more_fragments())?;
            return Some(Packet { protocol, src, dst, octets, wire_len, offset: None, may_fragment: true });
        }
        let may_fragment = !header.dont_fragment();
        Some(Packet { protocol, src, dst, octets, wire_len, offset: Some(at + head), may_fragment })
    }

    fn ipv6<'a>(&'a mut self, time: u64, ip: &'a [u8], wire: usize, base: usize) -> Option<Packet<'a>> {
        let header = Ipv6HeaderSlice::from_slice(ip).ok()?;
        let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
        // A payload length of 0 is a jumbogram or what segmentation offload leaves behind.
        let end = match usize::from(header.payload_length()) {
            0 => wire,
            length => (40 + length).min(wire),
        };
        let mut protocol = header.next_header().0;
        let mut at = 40;
        loop {
            let rest = ip.get(at..).unwrap_or(&[]);
            match protocol {
                44 => {
                    let fragment = Ipv6FragmentHeaderSlice::from_slice(rest).ok()?;
                    protocol = fragment.next_header().0;
                    at += 8;
                    if fragment.is_fragmenting_payload() {
                        let key = Key { src, dst, identification: fragment.identification(), protocol };
                        let offset = usize::from(fragment.fragment_offset().value()) * 8;
                        let octets = &ip[at..end.min(ip.len()).max(at)];
                        let wire_len = end.checked_sub(at)?;
                        let more = fragment.more_fragments();
                        let (octets, wire_len) = self.fragments.add(time, key, offset, octets, wire_len, more)?;
                        return Some(Packet {
                            protocol,
                            src,
                            dst,
                            octets,
                            wire_len,
                            offset: None,
                            may_fragment: false,
                        });
                    }
                }
                // Hop-by-hop, routing, destination options; authentication counts its length otherwise.
                0 | 43 | 60 | 51 => {
                    let &[next, length, ..] = rest else { return None };
                    if rest.len() < 8 {
                        return None;
                    }
                    at += if protocol == 51 { (usize::from(length) + 2) * 4 } else { (usize::from(length) + 1) * 8 };
                    protocol = next;
                }
                _ => break,
            }
        }
        let wire_len = end.checked_sub(at)?;
        let octets = ip.get(at..end.min(ip.len()).max(at)).unwrap_or(&[]);
        Some(Packet { protocol, src, dst, octets, wire_len, offset: Some(base + at), may_fragment: false })
    }
}

fn segment<'a>(frame: &Frame<'_>, packet: &Packet<'a>) -> Option<Transport<'a>> {
    let octets = packet.octets;
    let fixed = octets.first_chunk::<20>()?;
    let head = usize::from(fixed[12] >> 4) * 4;
    if head < 20 || head > packet.wire_len {
        return None;
    }
    let mut without_options;
    let header = if let Some(header) = octets.get(..head) {
        header
    } else {
        // The snap length cut the options off: the fixed part alone, as a header without options, still tells all.
        without_options = *fixed;
        without_options[12] = 5 << 4 | fixed[12] & 0xf;
        &without_options[..]
    };
    let header = TcpHeaderSlice::from_slice(header).ok()?;
    Some(Transport::Tcp(Segment {
        frame: frame.number,
        time: frame.time,
        src: SocketAddr::new(packet.src, header.source_port()),
        dst: SocketAddr::new(packet.dst, header.destination_port()),
        seq: header.sequence_number(),
        syn: header.syn(),
        fin: header.fin(),
        rst: header.rst(),
        ack_flag: header.ack(),
        ack: header.acknowledgment_number(),
        window: header.window_size(),
        options: octets.get(20..head.min(octets.len())).unwrap_or(&[]),
        options_cut: octets.len() < head,
        may_fragment: packet.may_fragment,
        octets: octets.get(head..).unwrap_or(&[]),
        wire_len: u32::try_from(packet.wire_len - head).ok()?,
        offset: packet.offset.and_then(|at| u32::try_from(at + head).ok()),
    }))
}

fn datagram<'a>(frame: &Frame<'_>, packet: &Packet<'a>) -> Option<Transport<'a>> {
    let octets = packet.octets;
    let header = UdpHeaderSlice::from_slice(octets.get(..8)?).ok()?;
    let length = match usize::from(header.length()) {
        length @ 8.. => packet.wire_len.min(length),
        _ => packet.wire_len,
    };
    Some(Transport::Udp(Datagram {
        frame: frame.number,
        time: frame.time,
        src: SocketAddr::new(packet.src, header.source_port()),
        dst: SocketAddr::new(packet.dst, header.destination_port()),
        octets: &octets[8..length.min(octets.len()).max(8)],
        wire_len: u32::try_from(length.checked_sub(8)?).ok()?,
        offset: packet.offset.and_then(|at| u32::try_from(at + 8).ok()),
    }))
}
