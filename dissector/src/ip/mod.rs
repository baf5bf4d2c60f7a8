//! Finds the TCP segment or UDP datagram in a frame. For this purpose, this module reads link
//! headers, tunnels, IPv4 and IPv6, and reassembles IP fragments.
//!
//! For a packet in a tunnel, only the innermost addresses and ports count. This module does not
//! verify checksums. If the snap length cuts off octets of a packet, this module still knows the
//! lengths that the packet had on the wire.

mod fragments;
mod header;

use std::net::{IpAddr, SocketAddr};

use etherparse::{TcpHeaderSlice, UdpHeaderSlice};

use crate::frame_number::FrameNumber;
use crate::link::{self, Header, SkipReason};
use crate::path::Path;
use crate::source::Frame;
use fragments::{Fragments, Key};

/// Maximum length of a packet in octets. With segmentation offload, a captured packet can be longer
/// than any packet on the wire. If a packet is longer than this limit, its length field is damaged.
const LONGEST_PACKET: usize = 1 << 20;
/// Maximum number of headers before the transport header. Real frames have less than twelve
/// headers.
const MAX_HEADERS: usize = 32;

/// IP protocol numbers.
const IP_IN_IP: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const ESP: u8 = 50;
const ETHER_IP: u8 = 97;
const MPLS: u8 = 137;

const UDP_LEN: usize = 8;
/// UDP port of ESP in UDP (RFC 3948). If the payload starts with four zero bytes, it is not ESP,
/// but a message of the key exchange.
const ESP_PORT: u16 = 4500;

/// The transport header and payload of a frame.
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
    /// The frame that completed the segment.
    pub frame: FrameNumber,
    /// Capture time of the frame in nanoseconds since 1970.
    pub time: u64,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// The network in which the segment was captured.
    pub path: Path,
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
    /// Acknowledgement number. It is valid only if ACK is set.
    pub ack: u32,
    /// The window field without scaling.
    pub window: u16,
    /// The captured part of the TCP options.
    pub options: &'a [u8],
    /// Whether the snap length cut the options.
    pub options_cut: bool,
    /// Whether a router is allowed to fragment the IP packet (IPv4 with Don't Fragment clear).
    pub may_fragment: bool,
    /// The remaining hops of the IP packet: TTL of IPv4, Hop Limit of IPv6.
    pub ttl: u8,
    /// The field Identification of IPv4; `None` for IPv6.
    pub identification: Option<u16>,
    /// The captured payload octets.
    pub octets: &'a [u8],
    /// The captured octets of the TCP header and the payload.
    pub packet: &'a [u8],
    /// Length of the payload on the wire in octets, at least `octets.len()`.
    pub wire_len: u32,
    /// Offset of the payload in the octets of the frame; `None` if the packet was reassembled from
    /// fragments.
    pub offset: Option<u32>,
}

/// A UDP datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datagram<'a> {
    /// The frame that completed the datagram.
    pub frame: FrameNumber,
    /// Capture time of the frame in nanoseconds since 1970.
    pub time: u64,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// The captured payload octets.
    pub octets: &'a [u8],
    /// Length of the payload on the wire in octets.
    pub wire_len: u32,
    /// Offset of the payload in the octets of the frame; `None` if the packet was reassembled from
    /// fragments.
    pub offset: Option<u32>,
}

/// The unread bytes of a frame, or of a packet that was reassembled from fragments.
#[derive(Clone, Copy)]
struct UnreadBytes {
    reassembled: bool,
    /// Offset of the first unread byte. `end` is the offset after the last captured byte.
    at: usize,
    end: usize,
    /// Number of bytes on the wire from `at` on.
    wire_len: usize,
}

impl UnreadBytes {
    /// Returns the part from `offset` on. The part has `wire_len` bytes on the wire.
    fn part(self, offset: usize, wire_len: usize) -> Result<Self, SkipReason> {
        let at = self.at + offset;
        if at > self.end {
            return Err(SkipReason::Truncated);
        }
        Ok(UnreadBytes { at, end: self.end.min(at.saturating_add(wire_len)), wire_len, ..self })
    }

    /// The bytes after a header of `length` bytes.
    fn after(self, length: usize) -> Result<Self, SkipReason> {
        let wire_len = self.wire_len.checked_sub(length).ok_or(SkipReason::Malformed)?;
        self.part(length, wire_len)
    }

    fn of<'a>(&self, frame: &'a [u8], reassembled: &'a [u8]) -> &'a [u8] {
        &(if self.reassembled { reassembled } else { frame })[self.at..self.end]
    }
}

/// The payload of an IP packet, which starts with the transport header.
#[derive(Clone, Copy)]
struct Packet {
    src: IpAddr,
    dst: IpAddr,
    rest: UnreadBytes,
    may_fragment: bool,
    ttl: u8,
    identification: Option<u16>,
}

impl Packet {
    /// The position in the frame of the byte that is `head` bytes after the start of the transport
    /// header; `None` for a reassembled packet.
    fn offset(&self, head: usize) -> Option<u32> {
        u32::try_from(self.rest.at + head).ok().filter(|_| !self.rest.reassembled)
    }
}

/// Receives the headers that [`IpReader`] reads, from the outermost header to the innermost.
pub(crate) trait HeaderSink {
    /// Receives a header before an IP header. `octets` are the captured octets from the start of
    /// the header on.
    fn link(&mut self, header: Header, octets: &[u8]) {
        let _ = (header, octets);
    }

    /// Receives a valid IP header. `octets` are the captured octets from the start of the header
    /// on.
    fn ip(&mut self, octets: &[u8]) {
        let _ = octets;
    }
}

/// Ignores all headers.
impl HeaderSink for () {}

/// Finds the TCP segments and UDP datagrams of frames. Stores fragments of incomplete packets.
#[derive(Default)]
pub(crate) struct IpReader {
    fragments: Fragments,
    /// Payload of the packet that the latest fragment completed.
    reassembled: Vec<u8>,
}

impl IpReader {
    /// Returns the TCP segment or UDP datagram that `frame` contains or completes; `None` for a
    /// fragment of an incomplete packet.
    ///
    /// # Errors
    /// The reason why the frame has no readable segment or datagram.
    pub(crate) fn read<'a>(&'a mut self, frame: &Frame<'a>) -> Result<Option<Transport<'a>>, SkipReason> {
        self.read_headers(frame, &mut ())
    }

    /// Like [`IpReader::read`]. In addition, `headers` receives the headers before the transport
    /// header.
    ///
    /// # Errors
    /// The reason why the frame has no readable segment or datagram.
    pub(crate) fn read_headers<'a>(
        &'a mut self,
        frame: &Frame<'a>,
        headers: &mut impl HeaderSink,
    ) -> Result<Option<Transport<'a>>, SkipReason> {
        let captured = frame.octets.len();
        let wire_len = (frame.wire_len as usize).max(captured).min(LONGEST_PACKET.max(captured));
        let mut rest = UnreadBytes { reassembled: false, at: 0, end: captured, wire_len };
        let mut header = Header::Link(frame.link_type);
        let mut path = Path::on(frame.interface);
        // The result borrows `self.reassembled`, and the loop sometimes changes `self.reassembled`.
        // Therefore the result is built after the loop.
        let mut found = None;
        for _ in 0..MAX_HEADERS {
            let octets = rest.of(frame.octets, &self.reassembled);
            if header != Header::Ip {
                headers.link(header, octets);
                if let Some(tag) = link::tag(header, octets) {
                    path.add(tag);
                }
                let (next, length) = link::step(header, octets)?;
                (header, rest) = (next, rest.after(length)?);
                continue;
            }
            let ip = header::read(octets, rest.wire_len)?;
            headers.ip(octets);
            let mut inner = rest.part(ip.head, ip.payload_len)?;
            let mut protocol = ip.protocol;
            if let Some(piece) = &ip.fragment {
                let key = Key { src: ip.src, dst: ip.dst, identification: piece.identification, protocol: ip.protocol };
                let payload = inner.of(frame.octets, &self.reassembled);
                let Some(packet) =
                    self.fragments.add(frame.time, key, piece.offset, payload, inner.wire_len, piece.more)
                else {
                    return Ok(None);
                };
                inner = UnreadBytes { reassembled: true, at: 0, end: packet.captured, wire_len: packet.wire_len };
                self.reassembled = packet.octets;
                let (next, length) = header::extensions(&ip, inner.of(frame.octets, &self.reassembled))?;
                (protocol, inner) = (next, inner.after(length)?);
            }
            let packet = Packet {
                src: ip.src,
                dst: ip.dst,
                rest: inner,
                may_fragment: ip.may_fragment,
                ttl: ip.ttl,
                identification: ip.identification,
            };
            header = match protocol {
                TCP => {
                    found = Some((TCP, packet));
                    break;
                }
                UDP => match udp_tunnel(inner.of(frame.octets, &self.reassembled))? {
                    Some(tunnel) => {
                        inner = inner.after(UDP_LEN)?;
                        tunnel
                    }
                    None => {
                        found = Some((UDP, packet));
                        break;
                    }
                },
                IP_IN_IP | IPV6_IN_IP => Header::Ip,
                GRE => Header::Gre,
                ETHER_IP => Header::EtherIp,
                MPLS => Header::Mpls,
                ESP => return Err(SkipReason::Esp),
                other => return Err(SkipReason::IpProtocol(other)),
            };
            rest = inner;
        }
        let (protocol, packet) = found.ok_or(SkipReason::TooDeep)?;
        let octets = packet.rest.of(frame.octets, &self.reassembled);
        let transport =
            if protocol == TCP { segment(frame, &packet, path, octets) } else { datagram(frame, &packet, octets) };
        transport.map(Some)
    }

    /// Number of frames with fragments of packets that were dropped or are incomplete.
    pub(crate) fn lost_fragments(&self) -> u64 {
        self.fragments.lost()
    }
}

/// A fragment of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpFragment {
    /// The packet: source, destination, identification and protocol.
    pub packet: (IpAddr, IpAddr, u32, u8),
    /// Offset of the fragment in the payload of the packet, in octets.
    pub offset: usize,
    /// Number of octets on the wire.
    pub len: usize,
}

impl IpFragment {
    /// The fragment in `frame`; `None` if the frame has no fragment.
    pub(crate) fn of(frame: &Frame<'_>) -> Option<Self> {
        let mut found = FoundFragment(None);
        // The error is the reason why the frame has no segment. A fragment has none, either.
        let _ = IpReader::default().read_headers(frame, &mut found);
        found.0
    }
}

/// Receives the headers of a frame, and finds its fragment.
struct FoundFragment(Option<IpFragment>);

impl HeaderSink for FoundFragment {
    fn ip(&mut self, octets: &[u8]) {
        let Ok(header) = header::read(octets, LONGEST_PACKET) else { return };
        self.0 = header.fragment.map(|piece| IpFragment {
            packet: (header.src, header.dst, piece.identification, header.protocol),
            offset: piece.offset,
            len: header.payload_len,
        });
    }
}

/// Returns the tunnel header after a UDP header; `None` if the datagram has no tunnel header. If a
/// datagram has the port of a tunnel, but its payload is not a valid tunnel header, the result is
/// also `None`.
fn udp_tunnel(octets: &[u8]) -> Result<Option<Header>, SkipReason> {
    let Some(&[s0, s1, d0, d1]) = octets.first_chunk::<4>() else { return Ok(None) };
    let (from, to) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    let payload = octets.get(UDP_LEN..).unwrap_or(&[]);
    if (from == ESP_PORT || to == ESP_PORT) && payload.len() > 8 && payload[..4] != [0; 4] {
        return Err(SkipReason::Esp);
    }
    Ok(link::udp_tunnel(to).filter(|header| link::step(*header, payload).is_ok()))
}

fn segment<'a>(frame: &Frame<'_>, packet: &Packet, path: Path, octets: &'a [u8]) -> Result<Transport<'a>, SkipReason> {
    let fixed = octets.first_chunk::<20>().ok_or(SkipReason::Truncated)?;
    let head = usize::from(fixed[12] >> 4) * 4;
    let wire_len = packet.rest.wire_len.checked_sub(head).and_then(|len| u32::try_from(len).ok());
    let (20.., Some(wire_len)) = (head, wire_len) else { return Err(SkipReason::Malformed) };
    let mut without_options;
    let header = if let Some(header) = octets.get(..head) {
        header
    } else {
        // The snap length cut the options. Read the fixed part as a header without options.
        without_options = *fixed;
        without_options[12] = 5 << 4 | fixed[12] & 0xf;
        &without_options[..]
    };
    let header = TcpHeaderSlice::from_slice(header).map_err(|_| SkipReason::Malformed)?;
    Ok(Transport::Tcp(Segment {
        frame: frame.number,
        time: frame.time,
        src: SocketAddr::new(packet.src, header.source_port()),
        dst: SocketAddr::new(packet.dst, header.destination_port()),
        path,
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
        ttl: packet.ttl,
        identification: packet.identification,
        octets: octets.get(head..).unwrap_or(&[]),
        packet: octets,
        wire_len,
        offset: packet.offset(head),
    }))
}

fn datagram<'a>(frame: &Frame<'_>, packet: &Packet, octets: &'a [u8]) -> Result<Transport<'a>, SkipReason> {
    let header = UdpHeaderSlice::from_slice(octets.get(..UDP_LEN).ok_or(SkipReason::Truncated)?);
    let header = header.map_err(|_| SkipReason::Malformed)?;
    let length = match usize::from(header.length()) {
        length @ UDP_LEN.. => packet.rest.wire_len.min(length),
        _ => packet.rest.wire_len,
    };
    let wire_len = length.checked_sub(UDP_LEN).and_then(|len| u32::try_from(len).ok());
    Ok(Transport::Udp(Datagram {
        frame: frame.number,
        time: frame.time,
        src: SocketAddr::new(packet.src, header.source_port()),
        dst: SocketAddr::new(packet.dst, header.destination_port()),
        octets: &octets[UDP_LEN..length.min(octets.len()).max(UDP_LEN)],
        wire_len: wire_len.ok_or(SkipReason::Malformed)?,
        offset: packet.offset(UDP_LEN),
    }))
}
