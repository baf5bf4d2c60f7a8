//! The reasons why weft finds no TCP segment or UDP datagram in a frame.

use std::collections::BTreeMap;
use std::fmt;

use crate::link_type;
use crate::source::Media;

/// Maximum number of reasons with separate counts. A hostile capture can have very many reasons.
/// This limit therefore bounds the memory.
const MAX_REASONS: usize = 256;

/// The reason why weft finds no TCP segment or UDP datagram in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// The frame ends within a header, or the snap length cut the header.
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
    /// An IEEE 802.11 management frame, a control frame, or a data frame without data.
    WifiOther,
    /// An IEEE 802.11 fragment or aggregate. weft does not reassemble fragments and does not split
    /// aggregates.
    WifiFragment,
    /// A control message of a tunnel, such as a GTP-U echo.
    TunnelControl,
    /// A fragment of an IP packet. Other fragments of the packet were not captured.
    Fragment,
}

impl SkipReason {
    /// Returns whether a frame that is unread for this reason can belong to a connection. Frames of
    /// address resolution, routing and control cannot belong to a connection.
    #[must_use]
    pub fn may_hide_connections(self) -> bool {
        !matches!(
            self,
            SkipReason::EtherType(0x0806 | 0x88cc | 0x8808 | 0x8809)
                | SkipReason::IpProtocol(1 | 2 | 58 | 89 | 112)
                | SkipReason::Llc
                | SkipReason::PppProtocol(_)
                | SkipReason::WifiOther
                | SkipReason::TunnelControl
        )
    }
}

/// Number of unread frames by reason.
#[derive(Debug, Default)]
pub(crate) struct SkipCounts {
    counts: BTreeMap<SkipReason, u64>,
}

impl SkipCounts {
    pub(crate) fn add(&mut self, why: SkipReason) {
        let kept = self.counts.len() < MAX_REASONS || self.counts.contains_key(&why);
        *self.counts.entry(if kept { why } else { SkipReason::Malformed }).or_default() += 1;
    }

    /// Reverts one [`SkipCounts::add`].
    pub(crate) fn remove(&mut self, why: SkipReason) {
        if let Some(count) = self.counts.get_mut(&why) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&why);
            }
        }
    }

    /// All counts. If `count` is above zero, the list also has `count` for the reason `why`.
    pub(crate) fn with(&self, why: SkipReason, count: u64) -> Vec<(SkipReason, u64)> {
        let counts = self.counts.iter().map(|(why, count)| (*why, *count));
        counts.chain((count > 0).then_some((why, count))).collect()
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Truncated => f.write_str("truncated header"),
            SkipReason::Malformed => f.write_str("malformed header"),
            SkipReason::TooDeep => f.write_str("too many headers"),
            SkipReason::LinkType(link_type::INFINIBAND) => f.write_str("InfiniBand"),
            SkipReason::LinkType(link_type) => match Media::of(*link_type) {
                Some(media) => write!(f, "{media}"),
                None => write!(f, "link type {link_type}"),
            },
            SkipReason::EtherType(0x0806) => f.write_str("ARP"),
            SkipReason::EtherType(0x8906 | 0x8914) => f.write_str("FCoE"),
            SkipReason::EtherType(0x8915) => f.write_str("RoCE v1"),
            SkipReason::EtherType(0x88cc) => f.write_str("LLDP"),
            SkipReason::EtherType(0x8808) => f.write_str("Ethernet pause"),
            SkipReason::EtherType(0x8809) => f.write_str("LACP"),
            SkipReason::EtherType(ether_type) => write!(f, "EtherType {ether_type:#06x}"),
            SkipReason::Llc => f.write_str("IEEE 802.2 (spanning tree and others)"),
            SkipReason::PppProtocol(protocol) => write!(f, "PPP protocol {protocol:#06x}"),
            SkipReason::IpProtocol(1) => f.write_str("ICMP"),
            SkipReason::IpProtocol(2) => f.write_str("IGMP"),
            SkipReason::IpProtocol(58) => f.write_str("ICMPv6"),
            SkipReason::IpProtocol(89) => f.write_str("OSPF"),
            SkipReason::IpProtocol(112) => f.write_str("VRRP"),
            SkipReason::IpProtocol(132) => f.write_str("SCTP"),
            SkipReason::IpProtocol(protocol) => write!(f, "IP protocol {protocol}"),
            SkipReason::Esp => f.write_str("IPsec ESP (encrypted)"),
            SkipReason::MacsecEncrypted => f.write_str("MACsec (encrypted)"),
            SkipReason::WifiEncrypted => f.write_str("802.11 (encrypted)"),
            SkipReason::WifiOther => f.write_str("802.11 management and control"),
            SkipReason::WifiFragment => f.write_str("802.11 fragments and aggregates"),
            SkipReason::TunnelControl => f.write_str("tunnel control messages"),
            SkipReason::Fragment => f.write_str("IP fragments"),
        }
    }
}
