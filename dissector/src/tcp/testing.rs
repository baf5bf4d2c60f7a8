//! Segments for tests.

use std::net::SocketAddr;

use super::connection_summary::ConnectionSummary;
use crate::frame_number::FrameNumber;
use crate::ip::Segment;
use crate::stream_id::StreamId;

/// A connection that was closed. Octets in the first direction only were captured.
pub(super) const PAST: ConnectionSummary = ConnectionSummary {
    number: StreamId::FIRST,
    first: SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 1)),
    isn: [Some(100), None],
    end: [Some(5), None],
    evicted: false,
    missing: [None; 2],
};

/// A segment in frame 1 from port 1 to port 2. All octets are captured.
pub(crate) fn segment(seq: u32, octets: &[u8]) -> Segment<'_> {
    Segment {
        frame: FrameNumber::FIRST,
        time: 0,
        src: SocketAddr::from(([10, 0, 0, 1], 1)),
        dst: SocketAddr::from(([10, 0, 0, 2], 2)),
        path: crate::path::Path::default(),
        seq,
        syn: false,
        fin: false,
        rst: false,
        ack_flag: true,
        ack: 0,
        window: 65535,
        options: &[],
        options_cut: false,
        may_fragment: false,
        ttl: 64,
        identification: Some(0),
        octets,
        packet: &[],
        wire_len: u32::try_from(octets.len()).unwrap(),
        offset: Some(54),
    }
}

/// A segment from [`segment`] with `wire_len` octets, which were not captured.
pub(super) fn octets(seq: u32, wire_len: u32) -> Segment<'static> {
    Segment { wire_len, ..segment(seq, &[]) }
}

/// A SYN.
pub(crate) fn syn(seq: u32) -> Segment<'static> {
    Segment { syn: true, ack_flag: false, ..segment(seq, &[]) }
}

/// The TCP header and octets of a segment from [`segment`], with a correct checksum.
pub(crate) fn packet(seq: u32, octets: &[u8]) -> Vec<u8> {
    let mut header = etherparse::TcpHeader::new(1, 2, seq, 65535);
    header.ack = true;
    header.checksum = header.calc_checksum_ipv4_raw([10, 0, 0, 1], [10, 0, 0, 2], octets).unwrap();
    [&header.to_bytes()[..], octets].concat()
}

/// The segment in a packet that [`packet`] returned.
pub(crate) fn captured(packet: &[u8]) -> Segment<'_> {
    let seq = u32::from_be_bytes(*packet[4..].first_chunk().unwrap());
    Segment { packet, ..segment(seq, &packet[20..]) }
}
