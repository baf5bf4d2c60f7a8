//! Frames for tests.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use etherparse::{PacketBuilder, TcpHeader};

/// The endpoint on side A.
pub(crate) const A: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40_000));
/// The endpoint on side B.
pub(crate) const B: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 7174));

/// The TCP header of a segment from `src` to `dst` with ACK and PSH.
fn header(src: SocketAddr, dst: SocketAddr, seq: u32) -> TcpHeader {
    let mut tcp = TcpHeader::new(src.port(), dst.port(), seq, 1000);
    (tcp.ack, tcp.psh) = (true, true);
    tcp
}

/// A segment from `src` to `dst` over IPv4. `change` changes its TCP header.
pub(crate) fn segment_of(
    src: SocketAddr,
    dst: SocketAddr,
    seq: u32,
    payload: &[u8],
    change: impl FnOnce(&mut TcpHeader),
) -> Vec<u8> {
    let mut tcp = header(src, dst, seq);
    change(&mut tcp);
    let (SocketAddr::V4(src), SocketAddr::V4(dst)) = (src, dst) else { panic!("not IPv4") };
    let mut octets = Vec::new();
    let ip = etherparse::IpHeaders::Ipv4(
        {
            let mut ip =
                etherparse::Ipv4Header::new(0, 64, etherparse::ip_number::TCP, src.ip().octets(), dst.ip().octets())
                    .unwrap();
            ip.dont_fragment = true;
            ip
        },
        etherparse::Ipv4Extensions::default(),
    );
    PacketBuilder::ethernet2([2; 6], [4; 6]).ip(ip).tcp_header(tcp).write(&mut octets, payload).unwrap();
    octets
}

/// A segment from A to B over IPv4.
pub(crate) fn segment(seq: u32, payload: &[u8]) -> Vec<u8> {
    segment_of(A, B, seq, payload, |_| {})
}

/// A segment from A to B over IPv6.
pub(crate) fn segment_v6(seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    let (src, dst) = (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6(src.octets(), dst.octets(), 64)
        .tcp_header(header(A, B, seq))
        .write(&mut octets, payload)
        .unwrap();
    octets
}
