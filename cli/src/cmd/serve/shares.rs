//! Limits the memory that connections of one peer address can reserve. An MPA Request of a few
//! bytes reserves up to 128 MiB. Without a limit, one peer could reserve all memory and exclude
//! other peers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use weft_core::origin::Origin;

use crate::lock::locked;

/// Maximum number of bytes that all connections of one peer can reserve: eight times the memory of
/// the largest benchmark.
const SHARE: u64 = 1 << 30;

/// The reservations of all peers.
#[derive(Debug)]
pub(super) struct Shares {
    /// Total memory in bytes.
    memory: u64,
    /// Reserved bytes of each peer.
    reserved: Mutex<HashMap<Origin, u64>>,
}

/// The reservation of one connection. Dropping this value releases the memory.
#[derive(Debug)]
pub(super) struct Reservation {
    shares: Arc<Shares>,
    origin: Origin,
    bytes: u64,
}

impl Shares {
    /// Makes a table that divides this many bytes of memory between the peers.
    pub(super) fn of(memory: u64) -> Arc<Self> {
        Arc::new(Shares { memory, reserved: Mutex::default() })
    }

    /// Reserves memory for a connection of `peer`. Returns `None` if the connection is not allowed
    /// to have this much memory.
    ///
    /// The share of a peer is [`SHARE`], but at most half of the memory that other peers have not
    /// reserved. A connection gets at most half of the free part of its peer's share. So there is
    /// always memory for another peer, and for another connection of each peer.
    pub(super) fn reserve(self: &Arc<Self>, peer: IpAddr, bytes: u64) -> Option<Reservation> {
        let origin = Origin::of(peer);
        let mut reserved = locked(&self.reserved);
        let own = reserved.get(&origin).copied().unwrap_or(0);
        let others = reserved.values().sum::<u64>() - own;
        let share = SHARE.min(self.memory.saturating_sub(others) / 2);
        if bytes > share.saturating_sub(own) / 2 {
            return None;
        }
        reserved.insert(origin, own + bytes);
        Some(Reservation { shares: Arc::clone(self), origin, bytes })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = locked(&self.shares.reserved);
        let left = reserved.get(&self.origin).map_or(0, |own| own - self.bytes);
        if left == 0 {
            reserved.remove(&self.origin);
        } else {
            reserved.insert(self.origin, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREATEST: u64 = 128 << 20;

    fn peer(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn a_peer_gets_its_share_and_no_more() {
        let shares = Shares::of(4 << 30);
        let greedy: Vec<_> = (0..32).map_while(|_| shares.reserve(peer(1), GREATEST)).collect();
        assert_eq!(greedy.len(), 7);
        let (small, other) = (shares.reserve(peer(1), 65_567), shares.reserve(peer(2), GREATEST));
        assert!(small.is_some() && other.is_some());
        drop((greedy, small));
        assert!(shares.reserve(peer(1), SHARE / 2).is_some() && shares.reserve(peer(1), SHARE / 2 + 1).is_none());
        drop(other);
        assert!(locked(&shares.reserved).is_empty());
    }

    #[test]
    fn greedy_peers_leave_memory_for_one_more() {
        let shares = Shares::of(4 << 30);
        let mut reservations = Vec::new();
        for last in 1..=16 {
            reservations.extend(std::iter::from_fn(|| shares.reserve(peer(last), 1 << 20)));
        }
        assert!(shares.reserve(peer(17), 65_567).is_some());
    }
}
