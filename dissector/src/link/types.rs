//! Link types of <https://www.tcpdump.org/linktypes.html>.

pub(super) const NULL: u16 = 0;
pub(super) const ETHERNET: u16 = 1;
pub(super) const PPP: u16 = 9;
pub(super) const PPP_HDLC: u16 = 50;
pub(super) const PPP_ETHER: u16 = 51;
pub(super) const C_HDLC: u16 = 104;
pub(super) const IEEE802_11: u16 = 105;
pub(super) const LOOP: u16 = 108;
pub(super) const LINUX_SLL: u16 = 113;
pub(super) const PRISM: u16 = 119;
pub(super) const RADIOTAP: u16 = 127;
pub(super) const AVS: u16 = 163;
pub(super) const PPP_PPPD: u16 = 166;
pub(super) const PPI: u16 = 192;
pub(super) const ERF: u16 = 197;
pub(super) const PPP_WITH_DIR: u16 = 204;
pub(super) const MPLS: u16 = 219;
pub(super) const NFLOG: u16 = 239;
pub(super) const IPOIB: u16 = 242;
pub(super) const PKTAP: u16 = 258;
pub(super) const LINUX_SLL2: u16 = 276;
/// Raw IP has several link types.
pub(super) const RAW: [u16; 5] = [12, 14, 101, 228, 229];
