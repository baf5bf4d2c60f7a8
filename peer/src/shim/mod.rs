//! The messages between the preload shim and its agent (`weft sdp agent`), and the rules that
//! decide which connections the shim passes to the agent.
//!
//! | file | content |
//! | --- | --- |
//! | `rules` | the addresses and ports that use SDP; the fall-back without an agent |
//! | `message` | requests and answers, one line of text each, on a Unix stream socket |
//!
//! Not included: sockets. The shim and the agent, which is a subcommand, each have their own.

mod message;
mod rules;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use message::{Answer, Failure, LONGEST, MessageError, Names, Request};
pub use rules::{By, Pattern, RuleError, Rules, Unreachable};

/// The agent's address for IPv4 connections with programs. It is a loopback address that nothing
/// else uses. The shim recognises the agent's connections by it, and then requests the real peer
/// address from the agent. The last three bytes are "SDP" in ASCII.
pub const HERE_V4: Ipv4Addr = Ipv4Addr::new(127, 83, 68, 80);
/// The agent's address for IPv6 connections with programs. IPv6 has only one loopback address.
pub const HERE_V6: Ipv6Addr = Ipv6Addr::LOCALHOST;

/// Returns whether a connection with a peer at this address may be one with the agent.
#[must_use]
pub fn is_here(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip == HERE_V4,
        IpAddr::V6(ip) => ip == HERE_V6,
    }
}
