//! Counts wrong tokens by their source address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// The number of wrong tokens in [`WINDOW`] after which an address has to wait. The server still
/// accepts a correct token from this address: all clients of a proxy have the same address, so a
/// client with a correct token can have the address of an attacker.
const MAX_FAILURES: u32 = 10;
/// How long the wrong tokens of an address count. The time starts with the first wrong token.
const WINDOW: Duration = Duration::from_secs(60);
/// The maximum number of counted addresses. If one more address sends a wrong token, this address
/// replaces the counted address with the fewest wrong tokens. So an attacker with more than this
/// number of addresses can avoid the wait, but still cannot guess a token of 120 bits.
const MAX_ADDRESSES: usize = 1024;

/// For each address, the number of wrong tokens, and the time of the first wrong token.
#[derive(Debug, Default)]
pub(super) struct Failures(HashMap<IpAddr, (u32, Instant)>);

impl Failures {
    /// Returns how many seconds the address has to wait before another guess. Returns `None` if the
    /// address need not wait.
    pub(super) fn remaining_wait(&mut self, from: IpAddr, now: Instant) -> Option<u64> {
        let left = |since: Instant| WINDOW.saturating_sub(now.saturating_duration_since(since));
        self.0.retain(|_, (_, since)| !left(*since).is_zero());
        let seconds = |left: Duration| left.as_secs().max(1);
        let (count, since) = self.0.get(&network(from))?;
        (*count >= MAX_FAILURES).then(|| seconds(left(*since)))
    }

    /// Counts a wrong token. Call this function only if [`remaining_wait`](Self::remaining_wait)
    /// returned `None`.
    pub(super) fn add(&mut self, from: IpAddr, now: Instant) {
        let from = network(from);
        if self.0.len() >= MAX_ADDRESSES && !self.0.contains_key(&from) {
            let least = self.0.iter().min_by_key(|(_, counted)| **counted).map(|(address, _)| *address);
            least.and_then(|address| self.0.remove(&address));
        }
        self.0.entry(from).or_insert((0, now)).0 += 1;
    }
}

/// Returns the address under which wrong tokens are counted. Of an IPv6 address, only the first 64
/// bits count, because one client can use all addresses of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_guess_waits_and_other_addresses_do_not() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let (bad, good) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        for _ in 0..MAX_FAILURES {
            assert_eq!(failures.remaining_wait(bad, now), None);
            failures.add(bad, now);
        }
        assert_eq!(failures.remaining_wait(bad, now), Some(60));
        assert_eq!(failures.remaining_wait("::ffff:192.0.2.1".parse().unwrap(), now), Some(60), "the same address");
        assert_eq!(failures.remaining_wait(good, now), None);
        assert_eq!(failures.remaining_wait(bad, now + Duration::from_secs(59)), Some(1));
        assert_eq!(failures.remaining_wait(bad, now + WINDOW), None);
        assert!(failures.0.is_empty(), "an address is forgotten when its wrong tokens no longer count");
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        for host in 0..u128::from(MAX_FAILURES) {
            let from: Ipv6Addr = "2001:db8::".parse().unwrap();
            failures.add(Ipv6Addr::from_bits(from.to_bits() + host).into(), now);
        }
        assert!(failures.remaining_wait("2001:db8::ffff:1".parse().unwrap(), now).is_some());
        assert_eq!(failures.remaining_wait("2001:db8:0:1::1".parse().unwrap(), now), None);
    }

    #[test]
    fn memory_is_bounded_and_many_networks_block_no_other_client() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let bad = "192.0.2.1".parse().unwrap();
        for _ in 0..MAX_FAILURES {
            failures.add(bad, now);
        }
        for host in 0..5000u32 {
            let from = IpAddr::from(host.to_be_bytes());
            assert_eq!(failures.remaining_wait(from, now), None);
            failures.add(from, now);
        }
        assert_eq!(failures.0.len(), MAX_ADDRESSES);
        assert_eq!(failures.remaining_wait(bad, now), Some(60), "an address with ten guesses still waits");
    }
}
