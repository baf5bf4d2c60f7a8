//! What was read of captures, as long as there is memory for it: what was used longest ago leaves first. What is being read is
//! read once, whoever asks for it, and to its end, also if all clients that asked are gone.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::memory::{Memory, Share};
use super::work::{Asker, Workers};

/// The maximum number of cached results, of any size.
const MOST: usize = 256;
const PANICKED: &str = "the reader failed; see the log of the server";

/// How far something is read, and what memory it takes.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Frames.
    pub(crate) frames: AtomicU64,
    pub(crate) share: Share,
}

impl Progress {
    pub(super) fn new(share: Share) -> Self {
        Progress { frames: AtomicU64::new(0), share }
    }
}

/// What one gets who asks.
#[derive(Debug)]
pub(crate) enum Got<V> {
    /// It.
    Ready(Arc<V>),
    /// Why it cannot be had.
    Failed(Arc<str>),
    /// It is being read; so many frames so far.
    Reading(u64),
    /// Too much is being read.
    Busy,
}

type Told<V> = Option<Result<Arc<V>, Arc<str>>>;

#[derive(Debug)]
struct Slot<V> {
    told: watch::Receiver<Told<V>>,
    progress: Arc<Progress>,
    used: u64,
}

#[derive(Debug)]
struct Slots<K, V> {
    by_key: HashMap<K, Slot<V>>,
    clock: u64,
}

/// The cache. Cheap to clone; clones share it.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    slots: Arc<Mutex<Slots<K, V>>>,
    workers: Workers,
    memory: Memory,
    /// Bytes of a value, about.
    size: fn(&V) -> usize,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        let (slots, workers, memory) = (Arc::clone(&self.slots), self.workers.clone(), self.memory.clone());
        Cache { slots, workers, memory, size: self.size }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, V: Send + Sync + 'static> Cache<K, V> {
    pub(crate) fn new(workers: Workers, memory: Memory, size: fn(&V) -> usize) -> Self {
        let slots = Arc::new(Mutex::new(Slots { by_key: HashMap::new(), clock: 0 }));
        let weak = Arc::downgrade(&slots);
        memory.add(move || weak.upgrade().is_some_and(|slots: Arc<Mutex<Slots<K, V>>>| held(&slots).drop_oldest()));
        Cache { slots, workers, memory, size }
    }

    /// What is there already.
    pub(crate) fn known(&self, key: &K) -> Told<V> {
        self.held().by_key.get(key)?.told.borrow().clone()
    }

    /// True if it is being made.
    pub(crate) fn is_under_way(&self, key: &K) -> bool {
        self.held().by_key.get(key).is_some_and(|slot| slot.told.borrow().is_none())
    }

    /// What `make` makes of `key`, for which one waits so long at most.
    pub(crate) async fn get(
        &self,
        asker: Asker,
        key: K,
        patience: Duration,
        make: impl FnOnce(&Progress) -> Result<V, String> + Send + 'static,
    ) -> Got<V> {
        let Some((mut told, progress)) = self.begin(asker, key, make) else { return Got::Busy };
        // An error is a sender that is gone.
        match tokio::time::timeout(patience, told.wait_for(Option::is_some)).await.ok().map(|told| told.ok()?.clone()) {
            Some(Some(Ok(value))) => Got::Ready(value),
            Some(Some(Err(why))) => Got::Failed(why),
            Some(None) => Got::Failed(PANICKED.into()),
            None => Got::Reading(progress.frames.load(Relaxed)),
        }
    }

    /// Where it will be told; begins the work where nobody did.
    fn begin(
        &self,
        asker: Asker,
        key: K,
        make: impl FnOnce(&Progress) -> Result<V, String> + Send + 'static,
    ) -> Option<(watch::Receiver<Told<V>>, Arc<Progress>)> {
        let mut slots = self.held();
        slots.clock += 1;
        let used = slots.clock;
        // What was read in part for want of memory is read again once there is some.
        let is_starved = |slot: &Slot<V>| slot.told.borrow().is_some() && slot.progress.share.is_starved();
        if slots.by_key.get(&key).is_some_and(is_starved) && self.memory.is_free() {
            slots.by_key.remove(&key);
        }
        if let Some(slot) = slots.by_key.get_mut(&key) {
            slot.used = used;
            return Some((slot.told.clone(), Arc::clone(&slot.progress)));
        }
        let ticket = self.workers.ticket(asker)?;
        let (tell, told) = watch::channel(None);
        let progress = Arc::new(Progress::new(self.memory.share()));
        slots.by_key.insert(key.clone(), Slot { told: told.clone(), progress: Arc::clone(&progress), used });
        drop(slots);
        let (cache, shared, shared_progress) = (self.clone(), Arc::clone(&progress), Arc::clone(&progress));
        tokio::spawn(async move {
            match ticket.work(move || make(&shared)).await {
                Some(made) => {
                    // Counted before it is sent, so that everything that is sent is counted.
                    progress.share.settle(made.as_ref().map_or(0, cache.size));
                    let is_for_want_of_memory = made.is_err() && progress.share.is_starved();
                    tell.send_replace(Some(made.map(Arc::new).map_err(Arc::from)));
                    let mut slots = cache.held();
                    if is_for_want_of_memory {
                        slots.by_key.remove(&key);
                    }
                    while slots.by_key.len() > MOST && slots.drop_oldest() {}
                }
                None => {
                    cache.held().by_key.remove(&key);
                }
            }
        });
        Some((told, shared_progress))
    }

    fn held(&self) -> MutexGuard<'_, Slots<K, V>> {
        held(&self.slots)
    }
}

impl<K: Clone + Eq + Hash, V> Slots<K, V> {
    /// Drops what was used longest ago; false if nothing is read to its end.
    fn drop_oldest(&mut self) -> bool {
        let done = self.by_key.iter().filter(|(_, slot)| slot.told.borrow().is_some());
        let oldest = done.min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone());
        oldest.and_then(|key| self.by_key.remove(&key)).is_some()
    }
}

/// Nothing under this lock panics half-way.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::work::WorkLimits;
    use super::super::work::tests::asker;
    use super::*;
    use crate::access::Role;

    const LONG: Duration = Duration::from_secs(60);

    fn one() -> Asker {
        asker("one", Role::Viewer)
    }

    /// A cache for so many bytes.
    fn cache(room: usize) -> Cache<u32, Vec<u8>> {
        let limits = WorkLimits { threads: 1, places: 2, reserved: 0, owner: 2 };
        Cache::new(Workers::new(limits), Memory::new(room), Vec::len)
    }

    #[tokio::test]
    async fn it_is_made_once_and_the_least_used_leaves() {
        let cache = cache(100);
        let made = Arc::new(AtomicU64::new(0));
        let get = async |key: u32| {
            let made = Arc::clone(&made);
            let make = move |progress: &Progress| {
                made.fetch_add(1, Relaxed);
                assert!(progress.share.hold(40));
                Ok(vec![0; 40])
            };
            assert!(matches!(cache.get(one(), key, LONG, make).await, Got::Ready(value) if value.len() == 40));
        };
        for key in [1, 2, 1, 3, 1] {
            get(key).await;
        }
        assert_eq!(made.load(Relaxed), 3, "1 was used since, 2 left");
        assert!(cache.known(&2).is_none() && cache.known(&1).is_some() && cache.known(&3).is_some());
    }

    #[tokio::test]
    async fn who_does_not_wait_is_told_how_far_it_is_and_too_much_is_refused() {
        let cache = cache(100);
        let (go, wait) = mpsc::channel::<()>();
        let (begun, began) = tokio::sync::oneshot::channel();
        let make = move |progress: &Progress| {
            progress.frames.store(7, Relaxed);
            let _ = begun.send(());
            let _ = wait.recv();
            Ok(Vec::new())
        };
        assert!(matches!(cache.get(one(), 1, Duration::ZERO, make).await, Got::Reading(_)));
        began.await.unwrap();
        let again = cache.get(one(), 1, Duration::ZERO, |_| Err("made twice".to_owned())).await;
        assert!(matches!(again, Got::Reading(7)), "{again:?}");
        // One works, one waits, a third is too many.
        assert!(matches!(cache.get(one(), 2, Duration::ZERO, |_| Ok(Vec::new())).await, Got::Reading(0)));
        assert!(matches!(cache.get(one(), 3, Duration::ZERO, |_| Ok(Vec::new())).await, Got::Busy));
        go.send(()).unwrap();
        assert!(matches!(cache.get(one(), 1, LONG, |_| Err("made twice".to_owned())).await, Got::Ready(_)));
        assert!(matches!(cache.get(one(), 2, LONG, |_| Err("made twice".to_owned())).await, Got::Ready(_)));
    }

    #[tokio::test]
    async fn what_fails_is_told_and_what_breaks_off_is_tried_again() {
        let cache = cache(100);
        assert!(matches!(cache.get(one(), 1, LONG, |_| Err("no".to_owned())).await, Got::Failed(why) if &*why == "no"));
        let broken = cache.get(one(), 2, LONG, |_| panic!("on purpose")).await;
        assert!(matches!(broken, Got::Failed(why) if &*why == PANICKED));
        while !matches!(cache.get(one(), 2, LONG, |_| Ok(Vec::new())).await, Got::Ready(_)) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_lacks_memory_is_tried_again_when_there_is_some() {
        let cache = cache(100);
        let other = cache.memory.share();
        assert!(other.hold(90));
        let make = |progress: &Progress| match progress.share.hold(40) {
            true => Ok(vec![0; 40]),
            false => Err("no memory".to_owned()),
        };
        assert!(matches!(cache.get(one(), 1, LONG, make).await, Got::Failed(why) if &*why == "no memory"));
        // A part is kept as long as memory is short.
        let part = |progress: &Progress| Ok(vec![0; if progress.share.hold(40) { 40 } else { 4 }]);
        for _ in 0..2 {
            assert!(matches!(cache.get(one(), 2, LONG, part).await, Got::Ready(value) if value.len() == 4));
        }
        drop(other);
        for key in [1, 2] {
            assert!(matches!(cache.get(one(), key, LONG, part).await, Got::Ready(value) if value.len() == 40));
        }
    }
}
