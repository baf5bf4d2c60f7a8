//! A cache of what was read of captures. If memory is short, it drops the least recently used
//! results. Concurrent requests for the same result share one pass, which finishes even if all
//! clients are gone.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::memory::{Memory, Share};
use super::work::{Requester, Workers};

/// The maximum number of cached results, of any size.
const MOST: usize = 256;
const PANICKED: &str = "the reader failed; see the log of the server";
/// Passes limit their time themselves, between two reads. After this time, the file system does not
/// answer a read.
const STUCK: Duration = Duration::from_secs(180);
const NO_ANSWER: &str = "the file system does not answer; try again later";

/// The progress of a pass, and the memory that it takes.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Frames that were read.
    pub(crate) frames: AtomicU64,
    pub(crate) share: Share,
}

impl Progress {
    pub(super) fn new(share: Share) -> Self {
        Progress { frames: AtomicU64::new(0), share }
    }
}

/// The answer to a request for a result.
#[derive(Debug)]
pub(crate) enum Got<V> {
    /// The result.
    Ready(Arc<V>),
    /// The error.
    Failed(Arc<str>),
    /// The pass is in progress; the number of frames so far.
    Reading(u64),
    /// A limit on concurrent work is reached.
    Busy,
}

type Outcome<V> = Option<Result<Arc<V>, Arc<str>>>;

#[derive(Debug)]
struct Slot<V> {
    outcome: watch::Receiver<Outcome<V>>,
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
    /// The approximate size of a value in bytes.
    size: fn(&V) -> usize,
    /// [`STUCK`], except in tests.
    stuck: Duration,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        let (slots, workers, memory) = (Arc::clone(&self.slots), self.workers.clone(), self.memory.clone());
        Cache { slots, workers, memory, size: self.size, stuck: self.stuck }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, V: Send + Sync + 'static> Cache<K, V> {
    pub(crate) fn new(workers: Workers, memory: Memory, size: fn(&V) -> usize) -> Self {
        let slots = Arc::new(Mutex::new(Slots { by_key: HashMap::new(), clock: 0 }));
        let weak = Arc::downgrade(&slots);
        memory.add(move || weak.upgrade().is_some_and(|slots: Arc<Mutex<Slots<K, V>>>| locked(&slots).drop_oldest()));
        Cache { slots, workers, memory, size, stuck: STUCK }
    }

    /// The result, if it is in the cache.
    pub(crate) fn known(&self, key: &K) -> Outcome<V> {
        self.locked().by_key.get(key)?.outcome.borrow().clone()
    }

    /// True if a pass for it is in progress.
    pub(crate) fn is_under_way(&self, key: &K) -> bool {
        self.locked().by_key.get(key).is_some_and(|slot| slot.outcome.borrow().is_none())
    }

    /// The result of `make` for `key`. Waits at most for `patience`.
    pub(crate) async fn get(
        &self,
        requester: Requester,
        key: K,
        patience: Duration,
        make: impl FnOnce(&Progress) -> Result<V, String> + Send + 'static,
    ) -> Got<V> {
        let Some((mut outcome, progress)) = self.begin(requester, key, make) else { return Got::Busy };
        let waited = tokio::time::timeout(patience, outcome.wait_for(Option::is_some)).await;
        // If the pass panics, it drops the sender.
        match waited.ok().map(|outcome| outcome.ok()?.clone()) {
            Some(Some(Ok(value))) => Got::Ready(value),
            Some(Some(Err(why))) => Got::Failed(why),
            Some(None) => Got::Failed(PANICKED.into()),
            None => Got::Reading(progress.frames.load(Relaxed)),
        }
    }

    /// The receiver of the outcome; starts a pass if there is none.
    fn begin(
        &self,
        requester: Requester,
        key: K,
        make: impl FnOnce(&Progress) -> Result<V, String> + Send + 'static,
    ) -> Option<(watch::Receiver<Outcome<V>>, Arc<Progress>)> {
        let mut slots = self.locked();
        slots.clock += 1;
        let used = slots.clock;
        // A result that is incomplete for lack of memory is made again once there is memory.
        let is_starved = |slot: &Slot<V>| slot.outcome.borrow().is_some() && slot.progress.share.is_starved();
        if slots.by_key.get(&key).is_some_and(is_starved) && self.memory.is_free() {
            slots.by_key.remove(&key);
        }
        if let Some(slot) = slots.by_key.get_mut(&key) {
            slot.used = used;
            return Some((slot.outcome.clone(), Arc::clone(&slot.progress)));
        }
        let ticket = self.workers.ticket(requester)?;
        let (sender, outcome) = watch::channel(None);
        let progress = Arc::new(Progress::new(self.memory.share()));
        slots.by_key.insert(key.clone(), Slot { outcome: outcome.clone(), progress: Arc::clone(&progress), used });
        drop(slots);
        let (cache, shared, shared_progress) = (self.clone(), Arc::clone(&progress), Arc::clone(&progress));
        let (begun, begins) = oneshot::channel();
        let work = ticket.work(move || {
            let _ = begun.send(());
            make(&shared)
        });
        tokio::spawn(async move {
            let mut work = pin!(work);
            let is_stuck = async {
                // A pass may wait long for its turn.
                let _ = begins.await;
                tokio::time::sleep(cache.stuck).await;
            };
            let worked = tokio::select! {
                biased;
                made = &mut work => Some(made),
                () = is_stuck => None,
            };
            match worked {
                Some(Some(made)) => {
                    // Counted before it is sent, so that a client never sees an uncounted result.
                    progress.share.settle(made.as_ref().map_or(0, cache.size));
                    let lacks_memory = made.is_err() && progress.share.is_starved();
                    sender.send_replace(Some(made.map(Arc::new).map_err(Arc::from)));
                    let mut slots = cache.locked();
                    if lacks_memory {
                        slots.remove(&key, &progress);
                    }
                    while slots.by_key.len() > MOST && slots.drop_oldest() {}
                }
                Some(None) => cache.locked().remove(&key, &progress),
                None => {
                    sender.send_replace(Some(Err(NO_ANSWER.into())));
                    // The thread cannot be stopped. While it waits, no other one reads the file.
                    work.await;
                    cache.locked().remove(&key, &progress);
                }
            }
        });
        Some((outcome, shared_progress))
    }

    fn locked(&self) -> MutexGuard<'_, Slots<K, V>> {
        locked(&self.slots)
    }
}

impl<K: Clone + Eq + Hash, V> Slots<K, V> {
    /// Removes the slot of a pass, unless a newer pass has replaced it.
    fn remove(&mut self, key: &K, progress: &Arc<Progress>) {
        if self.by_key.get(key).is_some_and(|slot| Arc::ptr_eq(&slot.progress, progress)) {
            self.by_key.remove(key);
        }
    }

    /// Drops the least recently used result; false if there is none.
    fn drop_oldest(&mut self) -> bool {
        let done = self.by_key.iter().filter(|(_, slot)| slot.outcome.borrow().is_some());
        let oldest = done.min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone());
        oldest.and_then(|key| self.by_key.remove(&key)).is_some()
    }
}

/// Ignores poisoning: no code under this lock panics during an update.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::work::WorkLimits;
    use super::super::work::tests::requester;
    use super::*;
    use crate::access::Role;

    const LONG: Duration = Duration::from_secs(60);

    fn one() -> Requester {
        requester("one", Role::Viewer)
    }

    /// A cache with `room` bytes.
    fn cache(room: usize) -> Cache<u32, Vec<u8>> {
        let limits = WorkLimits { threads: 1, places: 2, reserved: 0, owner: 2 };
        Cache::new(Workers::new(limits), Memory::new(room), Vec::len)
    }

    #[tokio::test]
    async fn makes_a_result_once_and_drops_the_least_recently_used() {
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
        assert_eq!(made.load(Relaxed), 3, "1 was used meanwhile, 2 was dropped");
        assert!(cache.known(&2).is_none() && cache.known(&1).is_some() && cache.known(&3).is_some());
    }

    #[tokio::test]
    async fn reports_progress_and_rejects_too_many_passes() {
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
        tokio::time::timeout(LONG, began).await.expect("the pass begins").unwrap();
        let again = cache.get(one(), 1, Duration::ZERO, |_| Err("made twice".to_owned())).await;
        assert!(matches!(again, Got::Reading(7)), "{again:?}");
        // One is running, one is waiting, a third one is too many.
        assert!(matches!(cache.get(one(), 2, Duration::ZERO, |_| Ok(Vec::new())).await, Got::Reading(0)));
        assert!(matches!(cache.get(one(), 3, Duration::ZERO, |_| Ok(Vec::new())).await, Got::Busy));
        go.send(()).unwrap();
        assert!(matches!(cache.get(one(), 1, LONG, |_| Err("made twice".to_owned())).await, Got::Ready(_)));
        assert!(matches!(cache.get(one(), 2, LONG, |_| Err("made twice".to_owned())).await, Got::Ready(_)));
    }

    #[tokio::test]
    async fn reports_errors_and_retries_after_a_panic() {
        let cache = cache(100);
        assert!(matches!(cache.get(one(), 1, LONG, |_| Err("no".to_owned())).await, Got::Failed(why) if &*why == "no"));
        let broken = cache.get(one(), 2, LONG, |_| panic!("on purpose")).await;
        assert!(matches!(broken, Got::Failed(why) if &*why == PANICKED));
        let retry = async {
            while !matches!(cache.get(one(), 2, LONG, |_| Ok(Vec::new())).await, Got::Ready(_)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, retry).await.expect("the failed pass is forgotten");
    }

    #[tokio::test]
    async fn a_pass_that_is_stuck_is_an_error_until_it_ends() {
        let cache = Cache { stuck: Duration::from_millis(20), ..cache(100) };
        let (go, wait) = mpsc::channel::<()>();
        let make = move |_: &Progress| {
            let _ = wait.recv();
            Ok(Vec::new())
        };
        assert!(matches!(cache.get(one(), 1, LONG, make).await, Got::Failed(why) if &*why == NO_ANSWER));
        let again = cache.get(one(), 1, LONG, |_| Err("made twice".to_owned())).await;
        assert!(matches!(again, Got::Failed(why) if &*why == NO_ANSWER), "no second thread is stuck");
        go.send(()).unwrap();
        let retry = async {
            while !matches!(cache.get(one(), 1, LONG, |_| Ok(Vec::new())).await, Got::Ready(_)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, retry).await.expect("the file is read again");
    }

    #[tokio::test]
    async fn retries_when_there_is_memory_again() {
        let cache = cache(100);
        let other = cache.memory.share();
        assert!(other.hold(90));
        let make = |progress: &Progress| match progress.share.hold(40) {
            true => Ok(vec![0; 40]),
            false => Err("no memory".to_owned()),
        };
        assert!(matches!(cache.get(one(), 1, LONG, make).await, Got::Failed(why) if &*why == "no memory"));
        // While memory is short, the incomplete result stays.
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
