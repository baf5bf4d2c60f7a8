//! The limit of memory for captures, which all caches and all passes share.
//!
//! Each pass has a [`Share`] and reports at short intervals how much memory the pass takes. If the
//! total would exceed the limit, the caches drop their least recently used results. If the caches
//! are empty, the pass that needs more memory stops.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::lock::locked;

/// A function that drops one cached result. Returns `false` if there is no result to drop.
type DropResult = Box<dyn Fn() -> bool + Send + Sync>;

/// The number of bytes in use, and their limit. Cheap to clone. Clones share the limit.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Inner>);

struct Inner {
    most: usize,
    used: Mutex<usize>,
    caches: Mutex<Vec<DropResult>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", *locked(&self.0.used), self.0.most)
    }
}

/// The memory of a pass or of a cached result. Dropping the share frees its bytes for other passes
/// and results.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Memory,
    bytes: Mutex<usize>,
    exhausted: AtomicBool,
}

impl Memory {
    /// Makes a limit of `most` bytes, of which no byte is in use yet.
    pub(crate) fn new(most: usize) -> Self {
        Memory(Arc::new(Inner { most, used: Mutex::default(), caches: Mutex::default() }))
    }

    /// Adds a cache. If memory is short, `drop_result` is called to drop a result of the cache. The
    /// results of a cache that was added earlier are dropped first.
    pub(crate) fn add(&self, drop_result: impl Fn() -> bool + Send + Sync + 'static) {
        locked(&self.0.caches).push(Box::new(drop_result));
    }

    /// Makes an empty share.
    pub(crate) fn share(&self) -> Share {
        Share { memory: self.clone(), bytes: Mutex::default(), exhausted: AtomicBool::default() }
    }

    /// Returns whether less than half of the bytes are in use.
    pub(crate) fn is_free(&self) -> bool {
        *locked(&self.0.used) < self.0.most / 2
    }

    fn drop_result(&self) -> bool {
        locked(&self.0.caches).iter().any(|drop_result| drop_result())
    }
}

impl Share {
    /// Changes the share to `bytes`. If the total would exceed the limit, caches drop results.
    /// Returns `false` if there is still not enough memory.
    pub(crate) fn resize(&self, bytes: usize) -> bool {
        while !self.try_resize(bytes) {
            if !self.memory.drop_result() {
                self.exhausted.store(true, Relaxed);
                return false;
            }
        }
        true
    }

    fn try_resize(&self, bytes: usize) -> bool {
        let (mut own, mut used) = (locked(&self.bytes), locked(&self.memory.0.used));
        let after = *used - *own + bytes;
        let fits = after <= self.memory.0.most || bytes <= *own;
        if fits {
            (*own, *used) = (bytes, after);
        }
        fits
    }

    /// Changes the share to `bytes`, even if the total then exceeds the limit. Use this function
    /// for memory that is already allocated.
    pub(crate) fn force_resize(&self, bytes: usize) {
        let (mut own, mut used) = (locked(&self.bytes), locked(&self.memory.0.used));
        *used = *used - *own + bytes;
        *own = bytes;
    }

    /// Returns whether a call of [`resize`](Self::resize) failed.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.force_resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_drop_results_before_readers_stop() {
        let memory = Memory::new(100);
        let (first, second) = (memory.share(), memory.share());
        assert!(first.resize(60) && second.resize(40));
        assert!(!second.resize(41) && second.is_exhausted() && !first.is_exhausted());
        let cached = Mutex::new(Some(first));
        memory.add(move || locked(&cached).take().is_some());
        assert!(second.resize(100), "the cache dropped its result");
        assert!(!second.resize(101) && second.resize(99));
        drop(second);
        assert_eq!(format!("{memory:?}"), "0 of 100 bytes");
    }

    #[test]
    fn a_share_can_always_shrink() {
        let memory = Memory::new(100);
        let share = memory.share();
        share.force_resize(150);
        assert!(share.resize(120) && !share.resize(121) && !memory.is_free());
    }
}
