//! Limits the memory of the RNIC for each peer. A Request of a few bytes reserves up to 128 MiB.
//! Without limits, one peer could reserve all memory and exclude the other peers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_core::origin::Origin;

/// Bytes that the connections of one peer may reserve together: eight of the largest benchmark.
const SHARE: u64 = 1 << 30;

/// The reservations of the peers.
#[derive(Debug)]
pub(super) struct Shares {
    memory: u64,
    booked: Mutex<HashMap<Origin, u64>>,
}

/// The reservation of one connection. Dropping it releases the memory.
#[derive(Debug)]
pub(super) struct Booking {
    shares: Arc<Shares>,
    origin: Origin,
    bytes: u64,
}

impl Shares {
    /// Shares of this much memory.
    pub(super) fn of(memory: u64) -> Arc<Self> {
        Arc::new(Shares { memory, booked: Mutex::default() })
    }

    /// Reserves memory for a connection of `peer`. A peer gets its share, but at most half of the
    /// memory that is free beside it. A connection gets at most half of its peer's remaining share.
    /// So there is always memory for one more peer, and for one more connection of each.
    pub(super) fn book(self: &Arc<Self>, peer: IpAddr, bytes: u64) -> Option<Booking> {
        let origin = Origin::of(peer);
        let mut booked = self.lock();
        let own = booked.get(&origin).copied().unwrap_or(0);
        let others = booked.values().sum::<u64>() - own;
        let share = SHARE.min(self.memory.saturating_sub(others) / 2);
        if bytes > share.saturating_sub(own) / 2 {
            return None;
        }
        booked.insert(origin, own + bytes);
        Some(Booking { shares: Arc::clone(self), origin, bytes })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, u64>> {
        // No change panics halfway.
        self.booked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        let mut booked = self.shares.lock();
        let left = booked.get(&self.origin).map_or(0, |own| own - self.bytes);
        if left == 0 {
            booked.remove(&self.origin);
        } else {
            booked.insert(self.origin, left);
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
        let greedy: Vec<_> = (0..32).map_while(|_| shares.book(peer(1), GREATEST)).collect();
        assert_eq!(greedy.len(), 7);
        let (small, other) = (shares.book(peer(1), 65_567), shares.book(peer(2), GREATEST));
        assert!(small.is_some() && other.is_some());
        drop((greedy, small));
        assert!(shares.book(peer(1), SHARE / 2).is_some() && shares.book(peer(1), SHARE / 2 + 1).is_none());
        drop(other);
        assert!(shares.lock().is_empty());
    }

    #[test]
    fn greedy_peers_leave_memory_for_one_more() {
        let shares = Shares::of(4 << 30);
        let mut bookings = Vec::new();
        for last in 1..=16 {
            bookings.extend(std::iter::from_fn(|| shares.book(peer(last), 1 << 20)));
        }
        assert!(shares.book(peer(17), 65_567).is_some());
    }
}
