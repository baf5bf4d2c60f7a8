//! Reads the headers of a frame before its IP packet: link layer, tags and tunnels. Each format has
//! one file.
//!
//! Each function reads one header. It returns the kind and the offset of the next header, or the
//! reason why the rest of the frame cannot be read. [`crate::ip`] calls these functions repeatedly,
//! because a tunnel header can follow an IP header, and another IP header then follows the tunnel
//! header.
//!
//! This module does not check link addresses and checksums.

mod capture_headers;
mod cooked;
mod ether_type;
mod ethernet;
mod geneve;
mod gre;
mod gtp;
mod header;
mod ipoib;
mod macsec;
mod mpls;
mod network;
mod nsh;
mod ppp;
mod skip_reason;
mod vxlan;
mod wifi;

use crate::link_type;

pub(crate) use header::{Header, Step};
pub(crate) use network::tag;
pub(crate) use skip_reason::SkipCounts;
pub use skip_reason::SkipReason;

/// UDP port of MPLS in UDP (RFC 7510).
const MPLS_PORT: u16 = 6635;

/// Returns whether frames of this link type can be read.
#[must_use]
pub fn reads_link_type(link_type: u16) -> bool {
    link_type == link_type::ETHERNET || !matches!(first(link_type, &[]), Err(SkipReason::LinkType(_)))
}

/// Returns whether the header is an Ethernet header.
pub(crate) fn is_ethernet(header: Header) -> bool {
    matches!(header, Header::Link(link_type::ETHERNET) | Header::Ethernet)
}

/// Returns whether the header is a VLAN tag. The tag has two bytes with priority and number, and
/// two bytes with the next EtherType.
pub(crate) fn is_vlan(header: Header) -> bool {
    matches!(header, Header::EtherType(ether_type) if ether_type::is_vlan(ether_type))
}

/// Reads the header at the start of `bytes`. This function does not read [`Header::Ip`]; the caller
/// must read an IP header.
pub(crate) fn step(header: Header, bytes: &[u8]) -> Step {
    match header {
        Header::Link(link_type::ETHERNET) | Header::Ethernet => ethernet::read(bytes),
        Header::Link(link_type) => first(link_type, bytes),
        Header::EtherType(ether_type) => ethernet::payload(ether_type, bytes),
        Header::Llc => ethernet::llc(bytes),
        Header::Ppp => ppp::read(bytes),
        Header::Wifi { padded } => wifi::read(bytes, padded),
        Header::Mpls => mpls::read(bytes),
        Header::Gre => gre::read(bytes),
        Header::Vxlan => vxlan::read(bytes),
        Header::VxlanGpe => vxlan::read_gpe(bytes),
        Header::Geneve => geneve::read(bytes),
        Header::Gtp => gtp::read(bytes),
        Header::EtherIp => Ok((Header::Ethernet, 2)),
        Header::Ip => Ok((Header::Ip, 0)),
    }
}

/// The tunnel header after a UDP header with destination port `port`; `None` if the port belongs to
/// no tunnel.
pub(crate) fn udp_tunnel(port: u16) -> Option<Header> {
    match port {
        gtp::PORT => Some(Header::Gtp),
        geneve::PORT => Some(Header::Geneve),
        vxlan::GPE_PORT => Some(Header::VxlanGpe),
        MPLS_PORT => Some(Header::Mpls),
        port if vxlan::PORTS.contains(&port) => Some(Header::Vxlan),
        _ => None,
    }
}

/// Reads the first header of a frame that is not Ethernet.
fn first(link_type: u16, bytes: &[u8]) -> Step {
    match link_type {
        link_type::NULL | link_type::LOOP => Ok((Header::Ip, 4)),
        raw if link_type::RAW.contains(&raw) => Ok((Header::Ip, 0)),
        link_type::LINUX_SLL => cooked::read(bytes),
        link_type::LINUX_SLL2 => cooked::read_v2(bytes),
        link_type::PPP | link_type::PPP_HDLC => Ok((Header::Ppp, 0)),
        link_type::PPP_PPPD | link_type::PPP_WITH_DIR => ppp::read_with_direction(bytes),
        link_type::PPP_ETHER => ppp::session(bytes),
        link_type::C_HDLC => ppp::read_cisco(bytes),
        link_type::IEEE802_11 => Ok((Header::Wifi { padded: false }, 0)),
        link_type::PRISM => wifi::prism(bytes),
        link_type::RADIOTAP => wifi::radiotap(bytes),
        link_type::AVS => wifi::avs(bytes),
        link_type::PPI => capture_headers::ppi(bytes),
        link_type::PKTAP => capture_headers::pktap(bytes),
        link_type::ERF => capture_headers::erf(bytes),
        link_type::NFLOG => capture_headers::nflog(bytes),
        link_type::MPLS => Ok((Header::Mpls, 0)),
        link_type::IPOIB => ipoib::read(bytes),
        unknown => Err(SkipReason::LinkType(unknown)),
    }
}
