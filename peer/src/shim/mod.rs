//! The messages between the preload shim and its agent (`weft sdp agent`), and the rules for what
//! the shim hands over.
//!
//! | file | what |
//! | --- | --- |
//! | `rules` | the addresses and ports that use SDP; the fall-back without an agent |
//! | `message` | requests and answers, one line of text each, on a Unix stream socket |
//!
//! Left out: sockets. The shim has its own, the agent is a subcommand.

mod message;
mod rules;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use message::{Answer, Failure, LONGEST, MessageError, Names, Request};
pub use rules::{By, Pattern, RuleError, Rules, Unreachable};

/// Where the agent's ends of programs' IPv4 connections are: a loopback address that nobody else
/// uses, so that the shim knows by it whose peer's name it has to ask for. The last three octets
/// are "SDP".
pub const HERE_V4: Ipv4Addr = Ipv4Addr::new(127, 83, 68, 80);
/// The same for IPv6, which has one loopback address only.
pub const HERE_V6: Ipv6Addr = Ipv6Addr::LOCALHOST;

/// May a connection with a peer at this address be the agent's?
#[must_use]
pub fn is_here(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip == HERE_V4,
        IpAddr::V6(ip) => ip == HERE_V6,
    }
}
