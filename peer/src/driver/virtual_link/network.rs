//! The network of a virtual link: its addresses, how long each way takes, and how much is in flight.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weft_core::wire::portmap::UDP_PORT;

/// Time from an end to the other.
pub(super) const LATENCY: Duration = Duration::from_micros(20);
/// The address of the target.
pub(super) const TARGET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7174);
/// Octets in flight to an end that does not read, before the other is held back, as TCP's window
/// would.
pub(super) const WINDOW: usize = 1 << 20;
/// How long a tester's send waits for a target that does not read.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// A port that is not a port mapper's.
const ASIDE: u16 = 40_404;

/// Where the target's port mapper is; another port of it when it strays.
pub(super) fn mapper(v6: bool, aside: bool) -> SocketAddr {
    let ip: IpAddr = if v6 { Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into() } else { TARGET.ip() };
    SocketAddr::new(ip, if aside { ASIDE } else { UDP_PORT })
}

/// The tester's addresses, of each family.
pub(super) fn tester_ip(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).into() } else { Ipv4Addr::new(192, 0, 2, 2).into() }
}

/// Another one of each.
pub(super) fn other_ip(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 3).into() } else { Ipv4Addr::new(192, 0, 2, 3).into() }
}

/// The tester's port mapper; another port of it when `aside`.
pub(super) fn tester_mapper(v6: bool, aside: bool) -> SocketAddr {
    SocketAddr::new(tester_ip(v6), if aside { ASIDE } else { UDP_PORT })
}
