//! Link types of <https://www.tcpdump.org/linktypes.html>, as in
//! [`Frame::link_type`](crate::source::Frame::link_type).

/// BSD loopback, with the address family in the byte order of the host.
pub const NULL: u16 = 0;
/// Ethernet.
pub const ETHERNET: u16 = 1;
/// PPP.
pub const PPP: u16 = 9;
/// PPP with HDLC framing.
pub const PPP_HDLC: u16 = 50;
/// A session of PPP over Ethernet.
pub const PPP_ETHER: u16 = 51;
/// IPv4 or IPv6 without a link header.
pub const RAW_IP: u16 = 101;
/// Cisco HDLC.
pub const C_HDLC: u16 = 104;
/// 802.11.
pub const IEEE802_11: u16 = 105;
/// BSD loopback, with the address family in big-endian order.
pub const LOOP: u16 = 108;
/// Linux cooked capture, version 1.
pub const LINUX_SLL: u16 = 113;
/// 802.11 after a Prism header.
pub const PRISM: u16 = 119;
/// 802.11 after a radiotap header.
pub const RADIOTAP: u16 = 127;
/// 802.11 after an AVS header.
pub const AVS: u16 = 163;
/// PPP after one byte with the direction, as from `pppd`.
pub const PPP_PPPD: u16 = 166;
/// Per-Packet Information.
pub const PPI: u16 = 192;
/// A record of Endace's ERF.
pub const ERF: u16 = 197;
/// PPP after one byte with the direction.
pub const PPP_WITH_DIR: u16 = 204;
/// MPLS.
pub const MPLS: u16 = 219;
/// Netfilter log of Linux.
pub const NFLOG: u16 = 239;
/// IP over InfiniBand.
pub const IPOIB: u16 = 242;
/// InfiniBand. weft does not read it.
pub const INFINIBAND: u16 = 247;
/// A PDU of an upper layer after Wireshark's tags. weft writes it, and does not read it.
pub const WIRESHARK_UPPER_PDU: u16 = 252;
/// Apple's pktap.
pub const PKTAP: u16 = 258;
/// Linux cooked capture, version 2.
pub const LINUX_SLL2: u16 = 276;
/// All link types of raw IP: the numbers of some operating systems, [`RAW_IP`], and the numbers
/// that permit only IPv4 or only IPv6.
pub const RAW: [u16; 5] = [12, 14, RAW_IP, 228, 229];
