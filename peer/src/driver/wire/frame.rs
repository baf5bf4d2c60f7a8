//! Finds the TCP segment in an Ethernet frame.

use std::net::{IpAddr, SocketAddr};

use smoltcp::wire::{
    ETHERNET_HEADER_LEN, EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket,
};

/// The location of the TCP segment in an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpFrame {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// Offset of the TCP header in the frame.
    pub(super) tcp: usize,
    /// Offset of the end of the segment. A short frame has padding after the segment.
    pub(super) end: usize,
}

impl TcpFrame {
    /// Returns the location of the TCP segment, or `None` if the frame has no complete segment.
    pub(super) fn find(frame: &[u8]) -> Option<Self> {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        let (source, destination, header, len) = match ethernet.ethertype() {
            EthernetProtocol::Ipv4 => {
                let ip = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
                if ip.next_header() != IpProtocol::Tcp || ip.more_frags() || ip.frag_offset() != 0 {
                    return None;
                }
                let (source, destination) = (IpAddr::V4(ip.src_addr()), IpAddr::V4(ip.dst_addr()));
                (source, destination, usize::from(ip.header_len()), usize::from(ip.total_len()))
            }
            EthernetProtocol::Ipv6 => {
                let ip = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
                if ip.next_header() != IpProtocol::Tcp {
                    return None;
                }
                let (source, destination) = (IpAddr::V6(ip.src_addr()), IpAddr::V6(ip.dst_addr()));
                (source, destination, ip.header_len(), ip.total_len())
            }
            _ => return None,
        };
        let (tcp, end) = (ETHERNET_HEADER_LEN + header, ETHERNET_HEADER_LEN + len);
        let segment = TcpPacket::new_checked(frame.get(tcp..end)?).ok()?;
        let source = SocketAddr::new(source, segment.src_port());
        let destination = SocketAddr::new(destination, segment.dst_port());
        Some(TcpFrame { source, destination, tcp, end })
    }

    /// Returns the segment. `frame` must be the frame in which the segment was found.
    pub(super) fn segment<'f>(&self, frame: &'f [u8]) -> TcpPacket<&'f [u8]> {
        TcpPacket::new_unchecked(&frame[self.tcp..self.end])
    }

    /// Like [`segment`](Self::segment), to change the segment.
    pub(super) fn segment_mut<'f>(&self, frame: &'f mut [u8]) -> TcpPacket<&'f mut [u8]> {
        TcpPacket::new_unchecked(&mut frame[self.tcp..self.end])
    }

    /// Computes the TCP checksum.
    pub(super) fn fill_checksum(&self, frame: &mut [u8]) {
        let (source, destination) = (IpAddress::from(self.source.ip()), IpAddress::from(self.destination.ip()));
        self.segment_mut(frame).fill_checksum(&source, &destination);
    }
}
