//! The messages between the shim and its agent (`weft sdp agent`), and the rules that decide which
//! connections the shim passes to the agent. The shim is a library that `LD_PRELOAD` loads into a
//! program.
//!
//! | file | content |
//! | --- | --- |
//! | `rules` | the addresses and ports that use SDP; the fall-back without an agent |
//! | `message` | requests and answers, one line of text each, on a Unix stream socket |
//!
//! This module opens no sockets. The shim and the agent each have their own code for sockets.

mod message;
mod rules;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use message::{Answer, Failure, MAX_LINE_LEN, MessageError, Names, Request};
pub use rules::{Pattern, Route, RuleError, Rules, Unreachable};

/// The agent's address for IPv4 connections with programs. It is a loopback address that other
/// programs normally do not use. The shim recognises the agent's connections by this address. The
/// shim then requests the real address of the peer from the agent. The last three bytes are "SDP"
/// in ASCII.
pub const AGENT_V4: Ipv4Addr = Ipv4Addr::new(127, 83, 68, 80);
/// The agent's address for IPv6 connections with programs. IPv6 has only one loopback address.
pub const AGENT_V6: Ipv6Addr = Ipv6Addr::LOCALHOST;

/// Returns whether `ip` is an address of the agent. Other programs can use the IPv6 address, too.
#[must_use]
pub fn is_agent_address(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip == AGENT_V4,
        IpAddr::V6(ip) => ip == AGENT_V6,
    }
}
