//! The network of a virtual link: its addresses, its latency, and its window.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weft_core::wire::portmap::UDP_PORT;

/// Latency of each direction.
pub(super) const LATENCY: Duration = Duration::from_micros(20);
/// The target's address for TCP connections.
pub(super) const TARGET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7174);
/// Limit of the unread bytes in one direction. At this limit the sender has to wait, like a TCP
/// sender with a full window. The last write before the wait can exceed the limit.
pub(super) const WINDOW: usize = 1 << 20;
/// How long a send of the tester waits for a target that does not read.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// A port that no port mapper listens on.
const OTHER_PORT: u16 = 40_404;

/// Returns the address of the target's port mapper. If `other_port` is set, the address has a port
/// that no port mapper uses.
pub(super) fn mapper(v6: bool, other_port: bool) -> SocketAddr {
    let ip: IpAddr = if v6 { Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into() } else { TARGET.ip() };
    SocketAddr::new(ip, if other_port { OTHER_PORT } else { UDP_PORT })
}

/// Returns the tester's IPv6 address if `v6` is set, otherwise its IPv4 address.
pub(super) fn tester_ip(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).into() } else { Ipv4Addr::new(192, 0, 2, 2).into() }
}

/// Returns the IPv6 address of another host if `v6` is set, otherwise its IPv4 address.
pub(super) fn other_ip(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 3).into() } else { Ipv4Addr::new(192, 0, 2, 3).into() }
}

/// Returns the address of the tester's port mapper. If `other_port` is set, the address has a port
/// that no port mapper uses.
pub(in crate::driver) fn tester_mapper(v6: bool, other_port: bool) -> SocketAddr {
    SocketAddr::new(tester_ip(v6), if other_port { OTHER_PORT } else { UDP_PORT })
}
