//! The memory for captures: one account for all caches and all passes.
//!
//! Each reader has a [`Share`] and reports at short intervals how much memory it takes. If that is
//! too much, the caches drop their least recently used results. If they are empty, the reader
//! stops.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Drops a cached result; false if there is none.
type GiveUp = Box<dyn Fn() -> bool + Send + Sync>;

/// An account of bytes. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Inner>);

struct Inner {
    most: usize,
    used: Mutex<usize>,
    caches: Mutex<Vec<GiveUp>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", *locked(&self.0.used), self.0.most)
    }
}

/// The memory of a reader or of a result, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Memory,
    bytes: Mutex<usize>,
    starved: AtomicBool,
}

impl Memory {
    /// An account of `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Memory(Arc::new(Inner { most, used: Mutex::default(), caches: Mutex::default() }))
    }

    /// Adds a cache, which drops results if memory is short. Caches drop results in the order in
    /// which they were added.
    pub(crate) fn add(&self, give_up: impl Fn() -> bool + Send + Sync + 'static) {
        locked(&self.0.caches).push(Box::new(give_up));
    }

    /// An empty share.
    pub(crate) fn share(&self) -> Share {
        Share { memory: self.clone(), bytes: Mutex::default(), starved: AtomicBool::default() }
    }

    /// True if less than half is used.
    pub(crate) fn is_free(&self) -> bool {
        *locked(&self.0.used) < self.0.most / 2
    }

    fn give_up(&self) -> bool {
        locked(&self.0.caches).iter().any(|give_up| give_up())
    }
}

impl Share {
    /// Changes the share to `bytes`; false if there is not enough memory.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        while !self.try_hold(bytes) {
            if !self.memory.give_up() {
                self.starved.store(true, Relaxed);
                return false;
            }
        }
        true
    }

    fn try_hold(&self, bytes: usize) -> bool {
        let (mut own, mut used) = (locked(&self.bytes), locked(&self.memory.0.used));
        let after = *used - *own + bytes;
        let fits = after <= self.memory.0.most || bytes <= *own;
        if fits {
            (*own, *used) = (bytes, after);
        }
        fits
    }

    /// Changes the share to `bytes` that are already allocated.
    pub(crate) fn settle(&self, bytes: usize) {
        let (mut own, mut used) = (locked(&self.bytes), locked(&self.memory.0.used));
        *used = *used - *own + bytes;
        *own = bytes;
    }

    /// True if there was not enough memory for it.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved.load(Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.settle(0);
    }
}

/// Ignores poisoning: no code under these locks panics during an update.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_drop_results_before_readers_stop() {
        let memory = Memory::new(100);
        let (first, second) = (memory.share(), memory.share());
        assert!(first.hold(60) && second.hold(40));
        assert!(!second.hold(41) && second.is_starved() && !first.is_starved());
        let cached = Mutex::new(Some(first));
        memory.add(move || locked(&cached).take().is_some());
        assert!(second.hold(100), "the cache dropped its result");
        assert!(!second.hold(101) && second.hold(99));
        drop(second);
        assert_eq!(format!("{memory:?}"), "0 of 100 bytes");
    }

    #[test]
    fn a_share_can_always_shrink() {
        let memory = Memory::new(100);
        let share = memory.share();
        share.settle(150);
        assert!(share.hold(120) && !share.hold(121) && !memory.is_free());
    }
}
