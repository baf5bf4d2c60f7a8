//! The memory that captures take: what was read of them, and what is being read, all together.
//!
//! Each reader holds a [`Share`] and says at short intervals how much it takes. If that is too much, the caches give up what was
//! used longest ago; if they have nothing left, the reader has to stop.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives up something; false if there is nothing.
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
        write!(f, "{} of {} bytes", *held(&self.0.used), self.0.most)
    }
}

/// What one reader, or one thing that was read, takes. Dropped, it takes nothing.
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

    /// Adds a cache, which gives something up if memory is short. Caches give up memory in the order in which they were added.
    pub(crate) fn add(&self, give_up: impl Fn() -> bool + Send + Sync + 'static) {
        held(&self.0.caches).push(Box::new(give_up));
    }

    /// A share of nothing.
    pub(crate) fn share(&self) -> Share {
        Share { memory: self.clone(), bytes: Mutex::default(), starved: AtomicBool::default() }
    }

    /// True if less than half is used.
    pub(crate) fn is_free(&self) -> bool {
        *held(&self.0.used) < self.0.most / 2
    }

    fn give_up(&self) -> bool {
        held(&self.0.caches).iter().any(|give_up| give_up())
    }
}

impl Share {
    /// Takes so many bytes instead of those before; false if there are not as many left.
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
        let (mut own, mut used) = (held(&self.bytes), held(&self.memory.0.used));
        let after = *used - *own + bytes;
        let fits = after <= self.memory.0.most || bytes <= *own;
        if fits {
            (*own, *used) = (bytes, after);
        }
        fits
    }

    /// Takes so many bytes, which are there already.
    pub(crate) fn settle(&self, bytes: usize) {
        let (mut own, mut used) = (held(&self.bytes), held(&self.memory.0.used));
        *used = *used - *own + bytes;
        *own = bytes;
    }

    /// True if it did not get what it wanted.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved.load(Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.settle(0);
    }
}

/// Nothing under these locks panics half-way.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_give_up_until_it_fits_and_then_readers_stop() {
        let memory = Memory::new(100);
        let (first, second) = (memory.share(), memory.share());
        assert!(first.hold(60) && second.hold(40));
        assert!(!second.hold(41) && second.is_starved() && !first.is_starved());
        let cached = Mutex::new(Some(first));
        memory.add(move || held(&cached).take().is_some());
        assert!(second.hold(100), "the cache gave up what it had");
        assert!(!second.hold(101) && second.hold(99));
        drop(second);
        assert_eq!(format!("{memory:?}"), "0 of 100 bytes");
    }

    #[test]
    fn less_is_always_granted() {
        let memory = Memory::new(100);
        let share = memory.share();
        share.settle(150);
        assert!(share.hold(120) && !share.hold(121) && !memory.is_free());
    }
}
