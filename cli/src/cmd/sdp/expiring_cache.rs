//! Stores the addresses that recently did not answer. A further connection to a stored address
//! fails at once, instead of after seconds.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::locked;

/// Maximum number of stored addresses.
const MAX_ADDRESSES: usize = 1024;
/// How long an address is stored.
const TIME_TO_LIVE: Duration = Duration::from_secs(30);

/// The stored addresses, each with a value such as the error. Clones share the data.
#[derive(Debug)]
pub(super) struct ExpiringCache<T>(Arc<Mutex<HashMap<SocketAddr, (Instant, T)>>>);

impl<T> Clone for ExpiringCache<T> {
    fn clone(&self) -> Self {
        ExpiringCache(Arc::clone(&self.0))
    }
}

impl<T> Default for ExpiringCache<T> {
    fn default() -> Self {
        ExpiringCache(Arc::default())
    }
}

impl<T: Clone> ExpiringCache<T> {
    /// Stores an address and its value. Does nothing if there are too many addresses.
    pub(super) fn insert(&self, address: SocketAddr, value: T) {
        self.insert_at(Instant::now(), address, value);
    }

    /// Returns the stored value of an address. Returns `None` if there is no value, or if the value
    /// is too old.
    pub(super) fn find(&self, address: SocketAddr) -> Option<T> {
        self.find_at(Instant::now(), address)
    }

    fn insert_at(&self, now: Instant, address: SocketAddr, value: T) {
        let mut known = locked(&self.0);
        known.retain(|_, (since, _)| now.duration_since(*since) < TIME_TO_LIVE);
        if known.len() < MAX_ADDRESSES {
            known.insert(address, (now, value));
        }
    }

    fn find_at(&self, now: Instant, address: SocketAddr) -> Option<T> {
        let known = locked(&self.0);
        known
            .get(&address)
            .filter(|(since, _)| now.duration_since(*since) < TIME_TO_LIVE)
            .map(|(_, value)| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: usize) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], u16::try_from(number).unwrap()))
    }

    #[test]
    fn an_address_is_known_for_30_seconds_to_every_clone() {
        let (cache, begun) = (ExpiringCache::default(), Instant::now());
        cache.clone().insert_at(begun, address(1), "silent");
        let find = |after| cache.find_at(begun + Duration::from_millis(after), address(1));
        assert_eq!((find(0), find(29_999), find(30_000)), (Some("silent"), Some("silent"), None));
        assert_eq!(cache.find_at(begun, address(2)), None);
        // The old entry has expired, so the cache stores the address again.
        cache.insert_at(begun + TIME_TO_LIVE, address(1), "again");
        assert_eq!(find(59_999), Some("again"));
    }

    #[test]
    fn no_more_than_1024_addresses_are_kept() {
        let (cache, begun) = (ExpiringCache::default(), Instant::now());
        (0..1025).for_each(|number| cache.insert_at(begun, address(number), ()));
        assert_eq!((cache.find_at(begun, address(1023)), cache.find_at(begun, address(1024))), (Some(()), None));
        // New entries can replace expired entries.
        let later = begun + TIME_TO_LIVE;
        cache.insert_at(later, address(1024), ());
        assert_eq!(cache.find_at(later, address(1024)), Some(()));
        assert_eq!(cache.0.lock().unwrap().len(), 1);
    }
}
