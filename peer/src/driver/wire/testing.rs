//! Frames for the tests of this folder.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ETHERNET_HEADER_LEN, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpAddress, IpProtocol, IpRepr,
    Ipv4Packet, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

use super::frame::TcpFrame;

pub(super) const TESTER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 9)), 50_000);
pub(super) const TARGET: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 17)), 7174);

/// Returns an IPv6 address with the port and the last byte of an IPv4 address.
pub(super) fn v6(address: SocketAddr) -> SocketAddr {
    let IpAddr::V4(ip) = address.ip() else { panic!("an IPv4 address is needed") };
    let last = u16::from(ip.octets()[3]);
    SocketAddr::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).into(), address.port())
}

/// A TCP segment to make. The fields are those of a data segment.
pub(super) fn data(from: SocketAddr, to: SocketAddr, sequence: u32, ack: u32, payload: &[u8]) -> TcpRepr<'_> {
    TcpRepr {
        src_port: from.port(),
        dst_port: to.port(),
        control: TcpControl::Psh,
        seq_number: TcpSeqNumber(sequence.cast_signed()),
        ack_number: Some(TcpSeqNumber(ack.cast_signed())),
        window_len: 4000,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None, None, None],
        timestamp: None,
        payload,
    }
}

/// Makes the frame of a segment.
pub(super) fn frame_of(from: SocketAddr, to: SocketAddr, segment: &TcpRepr<'_>) -> Vec<u8> {
    let (source, destination) = (IpAddress::from(from.ip()), IpAddress::from(to.ip()));
    let ip = IpRepr::new(source, destination, IpProtocol::Tcp, segment.buffer_len(), 64);
    let mut frame = vec![0; ETHERNET_HEADER_LEN + ip.buffer_len()];
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress([2, 0, 0, 0, 0, 1]),
        dst_addr: EthernetAddress([2, 0, 0, 0, 0, 2]),
        ethertype: if from.is_ipv4() { EthernetProtocol::Ipv4 } else { EthernetProtocol::Ipv6 },
    };
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
    let checksums = ChecksumCapabilities::default();
    let packet = &mut frame[ETHERNET_HEADER_LEN..];
    ip.emit(&mut *packet, &checksums);
    let mut tcp = TcpPacket::new_unchecked(&mut packet[ip.header_len()..]);
    segment.emit(&mut tcp, &source, &destination, &checksums);
    frame
}

/// Makes the frame of a data segment.
pub(super) fn frame(from: SocketAddr, to: SocketAddr, sequence: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    frame_of(from, to, &data(from, to, sequence, ack, payload))
}

/// Makes the frame of the tester's SYN.
pub(super) fn syn(sequence: u32) -> Vec<u8> {
    let mut segment = data(TESTER, TARGET, sequence, 0, b"");
    (segment.control, segment.ack_number, segment.window_scale) = (TcpControl::Syn, None, Some(0));
    frame_of(TESTER, TARGET, &segment)
}

/// Makes the frame of the target's SYN with ACK, with an MSS of 1000 bytes, and a window scale of 2.
pub(super) fn syn_ack(ack: u32) -> Vec<u8> {
    let mut segment = data(TARGET, TESTER, 5000, ack, b"");
    (segment.control, segment.window_scale, segment.max_seg_size) = (TcpControl::Syn, Some(2), Some(1000));
    frame_of(TARGET, TESTER, &segment)
}

/// Returns the segment of a frame, after a check of the lengths and the checksums.
pub(super) fn checked(frame: &[u8]) -> (TcpFrame, TcpPacket<&[u8]>) {
    let found = TcpFrame::find(frame).unwrap();
    assert_eq!(found.end, frame.len());
    if found.source.is_ipv4() {
        assert!(Ipv4Packet::new_checked(&frame[ETHERNET_HEADER_LEN..]).unwrap().verify_checksum());
    }
    let segment = found.segment(frame);
    assert!(segment.verify_checksum(&found.source.ip().into(), &found.destination.ip().into()));
    (found, segment)
}
