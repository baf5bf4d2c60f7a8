//! Why a frame was not read up to a TCP segment or UDP datagram.

use std::collections::BTreeMap;
use std::fmt;

use crate::source::Media;

/// Maximum number of reasons with separate counts. The limit bounds memory for a hostile capture
/// with very many reasons.
const MOST_REASONS: usize = 256;

/// Why a frame was not read up to a TCP segment or UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Unread {
    /// The capture ends within a header, or the snap length cut the header.
    Truncated,
    /// A header has values that its specification does not define.
    Malformed,
    /// The frame has more headers than any real packet.
    TooDeep,
    /// An unsupported link type.
    LinkType(u16),
    /// An unsupported EtherType, such as ARP.
    EtherType(u16),
    /// IEEE 802.2 traffic other than IP, such as spanning tree.
    Llc,
    /// A PPP protocol other than IP, such as LCP.
    PppProtocol(u16),
    /// An unsupported IP protocol, such as ICMP.
    IpProtocol(u8),
    /// IPsec ESP, which is encrypted.
    Esp,
    /// MACsec with encryption.
    MacsecEncrypted,
    /// IEEE 802.11 with encryption.
    WifiEncrypted,
    /// IEEE 802.11 management frame, control frame, or data frame without data.
    WifiOther,
    /// IEEE 802.11 fragments and aggregates, which are not reassembled.
    WifiFragment,
    /// A control message of a tunnel, such as a GTP-U echo.
    TunnelControl,
    /// A fragment of an IP packet whose other fragments have not been captured.
    Fragment,
}

impl Unread {
    /// Returns whether these frames may contain connections. Frames of address resolution, routing
    /// and control cannot.
    #[must_use]
    pub fn may_hide_connections(self) -> bool {
        !matches!(
            self,
            Unread::EtherType(0x0806 | 0x88cc | 0x8808 | 0x8809)
                | Unread::IpProtocol(1 | 2 | 58 | 89 | 112)
                | Unread::Llc
                | Unread::PppProtocol(_)
                | Unread::WifiOther
                | Unread::TunnelControl
        )
    }
}

/// Number of unread frames by reason.
#[derive(Debug, Default)]
pub(crate) struct UnreadCounts {
    counts: BTreeMap<Unread, u64>,
}

impl UnreadCounts {
    pub(crate) fn add(&mut self, why: Unread) {
        let kept = self.counts.len() < MOST_REASONS || self.counts.contains_key(&why);
        *self.counts.entry(if kept { why } else { Unread::Malformed }).or_default() += 1;
    }

    /// All counts, and additionally `count` for the reason `why`.
    pub(crate) fn with(&self, why: Unread, count: u64) -> Vec<(Unread, u64)> {
        let counts = self.counts.iter().map(|(why, count)| (*why, *count));
        counts.chain((count > 0).then_some((why, count))).collect()
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Truncated => f.write_str("cut within a header"),
            Unread::Malformed => f.write_str("malformed header"),
            Unread::TooDeep => f.write_str("too many headers"),
            Unread::LinkType(247) => f.write_str("InfiniBand"),
            Unread::LinkType(link_type) => match Media::of(*link_type) {
                Some(media) => write!(f, "{media}"),
                None => write!(f, "link type {link_type}"),
            },
            Unread::EtherType(0x0806) => f.write_str("ARP"),
            Unread::EtherType(0x8906 | 0x8914) => f.write_str("FCoE"),
            Unread::EtherType(0x8915) => f.write_str("RoCE v1"),
            Unread::EtherType(0x88cc) => f.write_str("LLDP"),
            Unread::EtherType(0x8808) => f.write_str("Ethernet pause"),
            Unread::EtherType(0x8809) => f.write_str("LACP"),
            Unread::EtherType(ether_type) => write!(f, "EtherType {ether_type:#06x}"),
            Unread::Llc => f.write_str("IEEE 802.2 (spanning tree and others)"),
            Unread::PppProtocol(protocol) => write!(f, "PPP protocol {protocol:#06x}"),
            Unread::IpProtocol(1) => f.write_str("ICMP"),
            Unread::IpProtocol(2) => f.write_str("IGMP"),
            Unread::IpProtocol(58) => f.write_str("ICMPv6"),
            Unread::IpProtocol(89) => f.write_str("OSPF"),
            Unread::IpProtocol(112) => f.write_str("VRRP"),
            Unread::IpProtocol(132) => f.write_str("SCTP"),
            Unread::IpProtocol(protocol) => write!(f, "IP protocol {protocol}"),
            Unread::Esp => f.write_str("IPsec ESP (encrypted)"),
            Unread::MacsecEncrypted => f.write_str("MACsec (encrypted)"),
            Unread::WifiEncrypted => f.write_str("802.11 (encrypted)"),
            Unread::WifiOther => f.write_str("802.11 management and control"),
            Unread::WifiFragment => f.write_str("802.11 fragments and aggregates"),
            Unread::TunnelControl => f.write_str("tunnel control messages"),
            Unread::Fragment => f.write_str("IP fragments"),
        }
    }
}
