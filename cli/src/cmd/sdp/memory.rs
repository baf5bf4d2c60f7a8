//! Addresses that did not answer a moment ago: to wait for them again takes seconds.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Addresses that are kept at most, and for how long.
const MOST: usize = 1024;
const KEPT: Duration = Duration::from_secs(30);

/// What is known of them; clones know the same.
#[derive(Debug)]
pub(super) struct Memory<T>(Arc<Mutex<HashMap<SocketAddr, (Instant, T)>>>);

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        Memory(Arc::clone(&self.0))
    }
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Memory(Arc::default())
    }
}

impl<T: Clone> Memory<T> {
    /// Keeps this of an address. One too many is not kept.
    pub(super) fn keep(&self, address: SocketAddr, what: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (since, _)| since.elapsed() < KEPT);
        if known.len() < MOST {
            known.insert(address, (Instant::now(), what));
        }
    }

    /// What is known of an address.
    pub(super) fn find(&self, address: SocketAddr) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&address).filter(|(since, _)| since.elapsed() < KEPT).map(|(_, what)| what.clone())
    }
}
