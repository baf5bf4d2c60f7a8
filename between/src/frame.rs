//! Finds and changes the TCP segment of an Ethernet frame.
//!
//! [`TcpFrame`] reads the positions of the headers and of the payload. The functions that change a
//! frame keep the lengths and checksums of IP and TCP correct. They must get only frames with a
//! correct TCP checksum: otherwise they would repair an error of the sender.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use etherparse::checksum::Sum16BitWords;
use etherparse::{Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice, icmpv4};

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const URG: u8 = 0x20;
/// Protocol number of TCP.
const TCP: u8 = 6;
/// Length of an Ethernet header without VLAN tags.
const ETHERNET_LEN: usize = 14;
/// Maximum number of bytes of a packet that an ICMP error quotes. The minimum MTU of IPv4 is 576
/// bytes, and a quote of this length fits into it.
const QUOTE: usize = 512;

/// The checksum field for `sum`. [`Sum16BitWords`] keeps the sum in the byte order of the host.
fn field(sum: &Sum16BitWords) -> [u8; 2] {
    sum.ones_complement().to_ne_bytes()
}

/// Result of checking a TCP checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumState {
    /// The checksum is correct.
    Good,
    /// The checksum field has only the sum over the pseudo header. The sender's host expected that
    /// its NIC completes the checksum (checksum offload), but there is no NIC on this path.
    Partial,
    /// The checksum is wrong.
    Bad,
}

/// Positions of the headers and of the payload of a TCP segment in an Ethernet frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpFrame {
    /// Offset of the IP header.
    ip: usize,
    /// Offset of the TCP header.
    tcp: usize,
    /// The payload. Octets after the end of the IP packet (Ethernet padding) do not belong to it.
    pub payload: Range<usize>,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    flags: u8,
    /// Whether routers must not fragment the packet. Always true for IPv6.
    dont_fragment: bool,
}

impl TcpFrame {
    /// Finds the TCP segment of `frame`. Returns `None` if the frame has another protocol, an IP
    /// fragment, or damaged lengths.
    #[must_use]
    pub fn find(frame: &[u8]) -> Option<Self> {
        let packet = SlicedPacket::from_ethernet(frame).ok()?;
        if packet.is_ip_payload_fragmented() {
            return None;
        }
        // The slices are parts of `frame`, so the difference of their addresses is an offset.
        let offset = |part: &[u8]| (part.as_ptr() as usize).checked_sub(frame.as_ptr() as usize);
        let (ip, src, dst, dont_fragment): (usize, IpAddr, IpAddr, bool) = match &packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
                (offset(header.slice())?, src, dst, header.dont_fragment())
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
                (offset(header.slice())?, src, dst, true)
            }
            _ => return None,
        };
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else { return None };
        let start = offset(tcp.slice())?;
        let payload = start + tcp.header_slice().len()..start + tcp.slice().len();
        Some(TcpFrame {
            ip,
            tcp: start,
            payload,
            src: SocketAddr::new(src, tcp.source_port()),
            dst: SocketAddr::new(dst, tcp.destination_port()),
            seq: tcp.sequence_number(),
            flags: *frame.get(start + 13)?,
            dont_fragment,
        })
    }

    /// Number of payload bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Whether the segment has no payload.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Whether the SYN flag is set.
    #[must_use]
    pub fn is_syn(&self) -> bool {
        self.flags & SYN != 0
    }

    /// Whether the FIN flag is set.
    #[must_use]
    pub fn is_fin(&self) -> bool {
        self.flags & FIN != 0
    }

    /// Whether the RST flag is set.
    #[must_use]
    pub fn is_rst(&self) -> bool {
        self.flags & RST != 0
    }

    /// Length of the IP packet in bytes.
    #[must_use]
    pub fn packet_len(&self) -> usize {
        self.payload.end - self.ip
    }

    /// Whether a router must report that the packet is too long, instead of fragmenting it.
    #[must_use]
    pub fn must_not_be_fragmented(&self) -> bool {
        self.dont_fragment
    }

    /// Whether the segment can be divided into two segments. A segment with urgent data, SYN or RST
    /// is not divided.
    #[must_use]
    pub fn is_divisible(&self) -> bool {
        self.len() >= 2 && self.flags & (URG | SYN | RST) == 0
    }

    /// Sum over the pseudo header (RFC 9293 section 3.1).
    fn pseudo_header(&self) -> Sum16BitWords {
        let mut sum = Sum16BitWords::new();
        for address in [self.src.ip(), self.dst.ip()] {
            sum = match address {
                IpAddr::V4(address) => sum.add_4bytes(address.octets()),
                IpAddr::V6(address) => sum.add_16bytes(address.octets()),
            };
        }
        let len = u32::try_from(self.payload.end - self.tcp).unwrap_or(u32::MAX);
        sum.add_2bytes([0, TCP]).add_4bytes(len.to_be_bytes())
    }

    fn stored_checksum(&self, frame: &[u8]) -> [u8; 2] {
        [frame[self.tcp + 16], frame[self.tcp + 17]]
    }

    /// The correct TCP checksum in network byte order.
    fn computed_checksum(&self, frame: &[u8]) -> [u8; 2] {
        let segment = &frame[self.tcp..self.payload.end];
        field(&self.pseudo_header().add_slice(&segment[..16]).add_slice(&segment[18..]))
    }

    /// Checks the TCP checksum of `frame`.
    #[must_use]
    pub fn checksum_state(&self, frame: &[u8]) -> ChecksumState {
        let stored = self.stored_checksum(frame);
        if stored == self.computed_checksum(frame) {
            ChecksumState::Good
        } else if stored == field(&self.pseudo_header()).map(|octet| !octet) {
            ChecksumState::Partial
        } else {
            ChecksumState::Bad
        }
    }

    /// Writes the correct TCP checksum.
    pub fn write_checksum(&self, frame: &mut [u8]) {
        let checksum = self.computed_checksum(frame);
        frame[self.tcp + 16..self.tcp + 18].copy_from_slice(&checksum);
    }

    /// Changes bits of the payload byte at `offset` in the frame, and corrects the TCP checksum.
    /// Only the CRC of MPA can detect this change.
    pub fn corrupt(&self, frame: &mut [u8], offset: usize, bits: u8) {
        frame[offset] ^= bits;
        self.write_checksum(frame);
    }

    /// The window field, without scaling.
    #[must_use]
    pub fn window(&self, frame: &[u8]) -> u16 {
        u16::from_be_bytes([frame[self.tcp + 14], frame[self.tcp + 15]])
    }

    /// Writes the window field, and corrects the TCP checksum.
    pub fn write_window(&self, frame: &mut [u8], window: u16) {
        frame[self.tcp + 14..self.tcp + 16].copy_from_slice(&window.to_be_bytes());
        self.write_checksum(frame);
    }

    /// The shift count of the window scale option (RFC 7323), if the segment has this option.
    #[must_use]
    pub fn window_scale(&self, frame: &[u8]) -> Option<u8> {
        let mut options = &frame[self.tcp + 20..self.payload.start];
        while let [kind, rest @ ..] = options {
            match (kind, rest) {
                (0, _) => return None,
                (1, _) => options = rest,
                (3, [3, shift, ..]) => return Some((*shift).min(14)),
                (_, [len, ..]) if *len >= 2 => options = options.get(usize::from(*len)..)?,
                _ => return None,
            }
        }
        None
    }

    /// Divides the segment after `at` bytes of its payload. Returns the frames of the two segments.
    /// FIN and PSH belong to the second segment.
    #[must_use]
    pub fn divide(&self, frame: &[u8], at: usize) -> [(Vec<u8>, TcpFrame); 2] {
        let cut = (self.payload.start + at).min(self.payload.end);
        let first = self.with_payload(frame, self.payload.start..cut, 0, self.flags & !(FIN | PSH));
        let second = self.with_payload(frame, cut..self.payload.end, at, self.flags);
        [first, second]
    }

    /// Makes a frame with the headers of `frame` and a part of its payload. The part begins `at`
    /// bytes after the first payload byte.
    fn with_payload(&self, frame: &[u8], part: Range<usize>, at: usize, flags: u8) -> (Vec<u8>, TcpFrame) {
        let mut made = frame[..self.payload.start].to_vec();
        made.extend_from_slice(&frame[part]);
        let seq = self.seq.wrapping_add(u32::try_from(at).unwrap_or(u32::MAX));
        made[self.tcp + 4..self.tcp + 8].copy_from_slice(&seq.to_be_bytes());
        made[self.tcp + 13] = flags;
        self.write_lengths(&mut made);
        let made_frame = TcpFrame { payload: self.payload.start..made.len(), seq, flags, ..self.clone() };
        made_frame.write_checksum(&mut made);
        (made, made_frame)
    }

    /// Writes the lengths of the IP header for a packet that ends at the end of `frame`.
    fn write_lengths(&self, frame: &mut [u8]) {
        let len = frame.len() - self.ip;
        if self.src.is_ipv6() {
            let len = u16::try_from(len - 40).unwrap_or(u16::MAX);
            frame[self.ip + 4..self.ip + 6].copy_from_slice(&len.to_be_bytes());
            return;
        }
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        frame[self.ip + 2..self.ip + 4].copy_from_slice(&len.to_be_bytes());
        let header = &mut frame[self.ip..];
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let sum = Sum16BitWords::new().add_slice(&header[..10]).add_slice(&header[12..header_len]);
        header[10..12].copy_from_slice(&field(&sum));
    }

    /// Makes the ICMP error with which a router reports to the sender of `frame` that the packet is
    /// longer than `mtu` (RFC 1191, RFC 8201). The error comes from the receiver's addresses,
    /// because the bridge has no address.
    #[must_use]
    pub fn too_long(&self, frame: &[u8], mtu: u16) -> Option<Vec<u8>> {
        let quote = &frame[self.ip..self.payload.end.min(self.ip + QUOTE)];
        let mut made = Vec::with_capacity(ETHERNET_LEN + QUOTE + 48);
        // The destination of the frame becomes the source, with the same VLAN tags.
        made.extend_from_slice(&frame[6..12]);
        made.extend_from_slice(&frame[..6]);
        made.extend_from_slice(&frame[12..self.ip]);
        let written = match (self.src.ip(), self.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let unreachable = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
                PacketBuilder::ipv4(dst.octets(), src.octets(), 64)
                    .icmpv4(Icmpv4Type::DestinationUnreachable(unreachable))
                    .write(&mut made, quote)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => PacketBuilder::ipv6(dst.octets(), src.octets(), 64)
                .icmpv6(Icmpv6Type::PacketTooBig { mtu: mtu.into() })
                .write(&mut made, quote),
            _ => return None,
        };
        written.ok().map(|()| made)
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{TcpHeader, VlanId};

    use super::*;
    use crate::testing::{A, B, segment, segment_v6};

    fn found(frame: &[u8]) -> TcpFrame {
        TcpFrame::find(frame).unwrap()
    }

    #[test]
    fn finds_the_segment_of_ipv4_and_ipv6() {
        for frame in [segment(100, b"payload"), segment_v6(100, b"payload")] {
            let tcp = found(&frame);
            assert_eq!((tcp.seq, &frame[tcp.payload.clone()]), (100, &b"payload"[..]));
            assert_eq!((tcp.src.port(), tcp.dst.port()), (A.port(), B.port()));
            assert_eq!(tcp.checksum_state(&frame), ChecksumState::Good);
        }
    }

    #[test]
    fn finds_no_segment_in_other_frames() {
        let udp = {
            let mut octets = Vec::new();
            let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
            step.write(&mut octets, b"x").unwrap();
            octets
        };
        let mut fragment = segment(1, b"payload");
        fragment[20] |= 0x20;
        let cut = segment(1, b"payload")[..30].to_vec();
        for frame in [udp, fragment, cut, Vec::new()] {
            assert_eq!(TcpFrame::find(&frame), None, "{frame:02x?}");
        }
    }

    #[test]
    fn padding_is_no_payload() {
        let mut frame = segment(1, b"");
        frame.resize(60, 0xaa);
        assert!(found(&frame).is_empty());
        assert_eq!(found(&frame).checksum_state(&frame), ChecksumState::Good);
    }

    #[test]
    fn finds_a_segment_in_a_vlan() {
        let mut octets = Vec::new();
        let tcp = TcpHeader::new(1, 2, 7, 100);
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .single_vlan(VlanId::try_new(5).unwrap())
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp_header(tcp)
            .write(&mut octets, b"abc")
            .unwrap();
        let [(first, _), (second, _)] = found(&octets).divide(&octets, 1);
        for (frame, seq, payload) in [(first, 7, &b"a"[..]), (second, 8, b"bc")] {
            let tcp = found(&frame);
            assert_eq!((tcp.seq, &frame[tcp.payload.clone()]), (seq, payload));
            assert_eq!(frame[12..18], octets[12..18], "the VLAN tag");
        }
    }

    #[test]
    fn partial_checksums_are_not_wrong() {
        for mut frame in [segment(1, b"payload"), segment_v6(1, b"payload")] {
            let tcp = found(&frame);
            let partial = field(&tcp.pseudo_header()).map(|octet| !octet);
            frame[tcp.tcp + 16..tcp.tcp + 18].copy_from_slice(&partial);
            assert_eq!(tcp.checksum_state(&frame), ChecksumState::Partial);
            tcp.write_checksum(&mut frame);
            assert_eq!(tcp.checksum_state(&frame), ChecksumState::Good);
            frame[tcp.payload.start] ^= 1;
            assert_eq!(tcp.checksum_state(&frame), ChecksumState::Bad);
        }
    }

    #[test]
    fn divided_segments_have_correct_headers() {
        for original in [segment(u32::MAX - 2, b"payload"), segment_v6(u32::MAX - 2, b"payload")] {
            let complete = found(&original);
            let [(first, tcp_first), (second, tcp_second)] = complete.divide(&original, 4);
            assert_eq!((found(&first), found(&second)), (tcp_first.clone(), tcp_second.clone()));
            assert_eq!((&first[tcp_first.payload.clone()], tcp_first.seq), (&b"payl"[..], u32::MAX - 2));
            assert_eq!((&second[tcp_second.payload.clone()], tcp_second.seq), (&b"oad"[..], 1));
            for (frame, tcp) in [(&first, &tcp_first), (&second, &tcp_second)] {
                assert_eq!(tcp.checksum_state(frame), ChecksumState::Good);
                if let Ok(SlicedPacket { net: Some(NetSlice::Ipv4(ip)), .. }) = SlicedPacket::from_ethernet(frame) {
                    let header = ip.header().to_header();
                    assert_eq!(header.header_checksum, header.calc_header_checksum());
                }
            }
            // The original has PSH.
            assert_eq!((tcp_first.flags & PSH, tcp_second.flags & PSH), (0, PSH));
        }
    }

    #[test]
    fn a_corrupted_byte_keeps_the_checksum_correct() {
        let mut frame = segment(1, b"payload");
        let tcp = found(&frame);
        let original = frame.clone();
        tcp.corrupt(&mut frame, tcp.payload.start + 3, 0x41);
        assert_eq!(tcp.checksum_state(&frame), ChecksumState::Good);
        let changed: Vec<usize> = (0..frame.len()).filter(|at| frame[*at] != original[*at]).collect();
        assert!(changed.contains(&(tcp.payload.start + 3)) && changed.len() <= 3, "{changed:?}");
    }

    #[test]
    fn the_icmp_error_goes_back_to_the_sender() {
        let frame = segment(1, &[7; 1400]);
        let error = found(&frame).too_long(&frame, 1280).unwrap();
        let packet = SlicedPacket::from_ethernet(&error).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = packet.transport else { panic!("no ICMP") };
        let unreachable = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
        assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(unreachable));
        assert_eq!(icmp.payload()[..20], frame[14..34], "the quoted IP header");
        assert_eq!((&error[..6], &error[6..12]), (&frame[6..12], &frame[..6]));
        let frame = segment_v6(1, &[7; 1400]);
        let error = found(&frame).too_long(&frame, 1280).unwrap();
        let packet = SlicedPacket::from_ethernet(&error).unwrap();
        let Some(TransportSlice::Icmpv6(icmp)) = packet.transport else { panic!("no ICMPv6") };
        assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: 1280 });
    }

    #[test]
    fn reads_the_window_scale() {
        let mut tcp = TcpHeader::new(1, 2, 7, 100);
        tcp.syn = true;
        let with = |options: &[etherparse::TcpOptionElement]| {
            let mut tcp = tcp.clone();
            tcp.set_options(options).unwrap();
            let mut octets = Vec::new();
            let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp_header(tcp);
            step.write(&mut octets, &[]).unwrap();
            found(&octets).window_scale(&octets)
        };
        use etherparse::TcpOptionElement::{MaximumSegmentSize, Noop, WindowScale};
        assert_eq!(with(&[MaximumSegmentSize(1460), Noop, WindowScale(7)]), Some(7));
        assert_eq!(with(&[WindowScale(200)]), Some(14));
        assert_eq!(with(&[MaximumSegmentSize(1460)]), None);
        assert_eq!(with(&[]), None);
    }
}
