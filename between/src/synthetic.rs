//! Makes Ethernet frames for the bytes of a TCP proxy.
//!
//! A proxy forwards bytes instead of frames. The bridge and the taps need frames, so this module
//! makes the frames of a handshake, of data, of a FIN and of a reset. Only the addresses, the
//! payload, the order and the times are real. The sequence numbers, the checksums and the lengths
//! are correct.

use std::net::{IpAddr, SocketAddr};

use etherparse::{PacketBuilder, TcpHeader};

use crate::side::{PerSide, Side};

/// Maximum payload of a frame in bytes.
pub const MAX_PAYLOAD: usize = 1460;
const WINDOW: u16 = 0xffff;
/// Locally administered MAC addresses.
const MACS: PerSide<[u8; 6]> = PerSide { a: [2, 0, 0, 0, 0, 0x0a], b: [2, 0, 0, 0, 0, 0x0b] };

/// The purpose of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// The first segment of the client.
    Syn,
    /// The answer to the SYN.
    SynAck,
    /// An acknowledgement without data.
    Ack,
    /// Data.
    Data,
    /// The end of a direction.
    Fin,
    /// An abort.
    Reset,
}

/// The sequence numbers of a connection.
#[derive(Debug, Clone)]
pub struct Connection {
    addresses: PerSide<SocketAddr>,
    /// Sequence number of the next byte from each side.
    next: PerSide<u32>,
}

impl Connection {
    /// Makes a connection between an endpoint on side A and an endpoint on side B. `number` selects
    /// the first sequence numbers.
    #[must_use]
    pub fn new(a: SocketAddr, b: SocketAddr, number: u32) -> Self {
        let first = number.wrapping_mul(0x0101_0000);
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let (mut a, mut b) = (canonical(a), canonical(b));
        // A packet has addresses of one family.
        if a.is_ipv4() != b.is_ipv4() {
            [&mut a, &mut b].into_iter().for_each(|address| address.set_ip(v6(address.ip()).into()));
        }
        Connection {
            addresses: PerSide { a, b },
            next: PerSide { a: first.wrapping_add(0x1000_0000), b: first.wrapping_add(0x5000_0000) },
        }
    }

    /// The addresses in the frames.
    #[must_use]
    pub fn addresses(&self) -> PerSide<SocketAddr> {
        self.addresses
    }

    /// Makes the next frame from side `from`. The payload must have at most [`MAX_PAYLOAD`] bytes.
    pub fn frame(&mut self, from: Side, kind: SegmentKind, payload: &[u8]) -> Vec<u8> {
        let (src, dst) = (self.addresses[from], self.addresses[from.peer()]);
        let mut tcp = TcpHeader::new(src.port(), dst.port(), self.next[from], WINDOW);
        tcp.syn = matches!(kind, SegmentKind::Syn | SegmentKind::SynAck);
        tcp.ack = kind != SegmentKind::Syn;
        tcp.acknowledgment_number = if tcp.ack { self.next[from.peer()] } else { 0 };
        tcp.psh = kind == SegmentKind::Data;
        tcp.fin = kind == SegmentKind::Fin;
        tcp.rst = kind == SegmentKind::Reset;
        let flags = u32::from(tcp.syn) + u32::from(tcp.fin);
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.next[from] = self.next[from].wrapping_add(len).wrapping_add(flags);
        let ethernet = PacketBuilder::ethernet2(MACS[from], MACS[from.peer()]);
        let ip = match (src.ip(), dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => ethernet.ipv4(src.octets(), dst.octets(), 64),
            (src, dst) => ethernet.ipv6(v6(src), v6(dst), 64),
        };
        let step = ip.tcp_header(tcp);
        let mut octets = Vec::with_capacity(step.size(payload.len()));
        // A payload of at most `MAX_PAYLOAD` bytes fits into each length field, and writing to
        // memory does not fail.
        let _ = step.write(&mut octets, payload);
        octets
    }
}

fn v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
