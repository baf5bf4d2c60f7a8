//! A cache of the results of passes over captures. A pass reads one capture from its beginning. If
//! memory is short, the cache drops the least recently used results. Concurrent requests for the
//! same result share one pass, which finishes even if all clients are gone.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::memory::{Memory, Share};
use super::work::{Requester, Workers};
use crate::lock::locked;

/// The maximum number of cached results, whatever their sizes.
const MAX_RESULTS: usize = 256;
const PANICKED: &str = "the reader failed; see the log of the server";
/// The time after which a pass counts as stuck. Between two reads of the file, a pass checks its
/// own, shorter time limit. So if a pass takes longer than this time, one read has not returned,
/// because the file system does not answer.
const STUCK: Duration = Duration::from_secs(180);
const NO_ANSWER: &str = "the file system does not answer; try again later";

/// The progress of a pass, and the memory of the pass.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The number of frames so far.
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
pub(crate) enum CacheResult<V> {
    /// The result.
    Ready(Arc<V>),
    /// The pass failed. The field is the reason.
    Failed(Arc<str>),
    /// The pass is in progress. The field is the number of frames so far.
    Reading(u64),
    /// A limit on concurrent work is reached.
    Busy,
}

type Outcome<V> = Option<Result<Arc<V>, Arc<str>>>;

/// A result, or a pass that makes it.
#[derive(Debug)]
struct Entry<V> {
    /// The result. `None` while the pass is in progress.
    outcome: watch::Receiver<Outcome<V>>,
    progress: Arc<Progress>,
    /// The value of `clock` at the last request for this result.
    used: u64,
}

#[derive(Debug)]
struct Entries<K, V> {
    by_key: HashMap<K, Entry<V>>,
    /// The number of requests so far.
    clock: u64,
}

/// The cache. Cheap to clone. Clones share the results.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    entries: Arc<Mutex<Entries<K, V>>>,
    workers: Workers,
    memory: Memory,
    /// Returns the approximate size of a value in bytes.
    size: fn(&V) -> usize,
    /// [`STUCK`], except in tests.
    stuck: Duration,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        let (entries, workers, memory) = (Arc::clone(&self.entries), self.workers.clone(), self.memory.clone());
        Cache { entries, workers, memory, size: self.size, stuck: self.stuck }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, V: Send + Sync + 'static> Cache<K, V> {
    pub(crate) fn new(workers: Workers, memory: Memory, size: fn(&V) -> usize) -> Self {
        let entries = Arc::new(Mutex::new(Entries { by_key: HashMap::new(), clock: 0 }));
        let weak = Arc::downgrade(&entries);
        memory.add(move || {
            weak.upgrade().is_some_and(|entries: Arc<Mutex<Entries<K, V>>>| locked(&entries).drop_oldest())
        });
        Cache { entries, workers, memory, size, stuck: STUCK }
    }

    /// Returns the result if it is in the cache.
    pub(crate) fn cached(&self, key: &K) -> Outcome<V> {
        locked(&self.entries).by_key.get(key)?.outcome.borrow().clone()
    }

    /// Returns whether a pass for this result is in progress.
    pub(crate) fn is_in_progress(&self, key: &K) -> bool {
        locked(&self.entries).by_key.get(key).is_some_and(|entry| entry.outcome.borrow().is_none())
    }

    /// Returns the result for `key`. If the cache has no result and no pass is in progress, starts
    /// a pass that calls `make`. Waits for the result at most for `timeout`.
    pub(crate) async fn get(
        &self,
        requester: Requester,
        key: K,
        timeout: Duration,
        make: impl FnOnce(&Progress) -> Result<V, String> + Send + 'static,
    ) -> CacheResult<V> {
        let Some((mut outcome, progress)) = self.begin(requester, key, make) else { return CacheResult::Busy };
        let waited = tokio::time::timeout(timeout, outcome.wait_for(Option::is_some)).await;
        // If the pass panics, the sender is dropped without a result.
        match waited.ok().map(|outcome| outcome.ok()?.clone()) {
            Some(Some(Ok(value))) => CacheResult::Ready(value),
            Some(Some(Err(why))) => CacheResult::Failed(why),
            Some(None) => CacheResult::Failed(PANICKED.into()),
            None => CacheResult::Reading(progress.frames.load(Relaxed)),
        }
    }

    /// Returns the receiver of the outcome for `key`, and the progress. Starts a pass if there is
    /// none. Returns `None` if a limit on concurrent work is reached.
    fn begin(
        &self,
        requester: Requester,
        key: K,
        make: impl FnOnce(&Progress) -> Result<V, String> + Send + 'static,
    ) -> Option<(watch::Receiver<Outcome<V>>, Arc<Progress>)> {
        let mut entries = locked(&self.entries);
        entries.clock += 1;
        let used = entries.clock;
        // If a result is incomplete for lack of memory, make it again when enough memory is free.
        let is_incomplete = |entry: &Entry<V>| entry.outcome.borrow().is_some() && entry.progress.share.is_exhausted();
        if entries.by_key.get(&key).is_some_and(is_incomplete) && self.memory.is_free() {
            entries.by_key.remove(&key);
        }
        if let Some(entry) = entries.by_key.get_mut(&key) {
            entry.used = used;
            return Some((entry.outcome.clone(), Arc::clone(&entry.progress)));
        }
        let ticket = self.workers.ticket(requester)?;
        let (sender, outcome) = watch::channel(None);
        let progress = Arc::new(Progress::new(self.memory.share()));
        entries.by_key.insert(key.clone(), Entry { outcome: outcome.clone(), progress: Arc::clone(&progress), used });
        drop(entries);
        let (cache, shared, shared_progress) = (self.clone(), Arc::clone(&progress), Arc::clone(&progress));
        let (begun, begins) = oneshot::channel();
        let work = ticket.work(move || {
            let _ = begun.send(());
            make(&shared)
        });
        tokio::spawn(async move {
            let mut work = pin!(work);
            let is_stuck = async {
                // Start the time limit only when the pass starts, because the pass can wait long
                // for a thread.
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
                    // Count the memory of the result before sending the result. Otherwise a client
                    // could get a result whose memory is not counted yet.
                    progress.share.force_resize(made.as_ref().map_or(0, cache.size));
                    let lacks_memory = made.is_err() && progress.share.is_exhausted();
                    sender.send_replace(Some(made.map(Arc::new).map_err(Arc::from)));
                    let mut entries = locked(&cache.entries);
                    if lacks_memory {
                        entries.remove(&key, &progress);
                    }
                    while entries.by_key.len() > MAX_RESULTS && entries.drop_oldest() {}
                }
                Some(None) => locked(&cache.entries).remove(&key, &progress),
                None => {
                    sender.send_replace(Some(Err(NO_ANSWER.into())));
                    // The thread cannot be stopped. The entry stays until the thread ends.
                    // Therefore no other thread reads the file.
                    work.await;
                    locked(&cache.entries).remove(&key, &progress);
                }
            }
        });
        Some((outcome, shared_progress))
    }
}

impl<K: Clone + Eq + Hash, V> Entries<K, V> {
    /// Removes the entry of a pass, unless a newer pass has replaced it.
    fn remove(&mut self, key: &K, progress: &Arc<Progress>) {
        if self.by_key.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.progress, progress)) {
            self.by_key.remove(key);
        }
    }

    /// Drops the least recently used result. Returns `false` if there is no result.
    fn drop_oldest(&mut self) -> bool {
        let done = self.by_key.iter().filter(|(_, entry)| entry.outcome.borrow().is_some());
        let oldest = done.min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
        oldest.and_then(|key| self.by_key.remove(&key)).is_some()
    }
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

    /// Makes a cache with a limit of `room` bytes.
    fn cache(room: usize) -> Cache<u32, Vec<u8>> {
        let limits = WorkLimits { threads: 1, tickets: 2, reserved: 0, owner: 2 };
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
                assert!(progress.share.resize(40));
                Ok(vec![0; 40])
            };
            assert!(matches!(cache.get(one(), key, LONG, make).await, CacheResult::Ready(value) if value.len() == 40));
        };
        for key in [1, 2, 1, 3, 1] {
            get(key).await;
        }
        assert_eq!(made.load(Relaxed), 3, "1 was used meanwhile, 2 was dropped");
        assert!(cache.cached(&2).is_none() && cache.cached(&1).is_some() && cache.cached(&3).is_some());
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
        assert!(matches!(cache.get(one(), 1, Duration::ZERO, make).await, CacheResult::Reading(_)));
        tokio::time::timeout(LONG, began).await.expect("the pass begins").unwrap();
        let again = cache.get(one(), 1, Duration::ZERO, |_| Err("made twice".to_owned())).await;
        assert!(matches!(again, CacheResult::Reading(7)), "{again:?}");
        // One pass is running and one is waiting. A third pass exceeds the limit.
        assert!(matches!(cache.get(one(), 2, Duration::ZERO, |_| Ok(Vec::new())).await, CacheResult::Reading(0)));
        assert!(matches!(cache.get(one(), 3, Duration::ZERO, |_| Ok(Vec::new())).await, CacheResult::Busy));
        go.send(()).unwrap();
        assert!(matches!(cache.get(one(), 1, LONG, |_| Err("made twice".to_owned())).await, CacheResult::Ready(_)));
        assert!(matches!(cache.get(one(), 2, LONG, |_| Err("made twice".to_owned())).await, CacheResult::Ready(_)));
    }

    #[tokio::test]
    async fn reports_errors_and_retries_after_a_panic() {
        let cache = cache(100);
        assert!(
            matches!(cache.get(one(), 1, LONG, |_| Err("no".to_owned())).await, CacheResult::Failed(why) if &*why == "no")
        );
        let broken = cache.get(one(), 2, LONG, |_| panic!("on purpose")).await;
        assert!(matches!(broken, CacheResult::Failed(why) if &*why == PANICKED));
        let retry = async {
            while !matches!(cache.get(one(), 2, LONG, |_| Ok(Vec::new())).await, CacheResult::Ready(_)) {
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
        assert!(matches!(cache.get(one(), 1, LONG, make).await, CacheResult::Failed(why) if &*why == NO_ANSWER));
        let again = cache.get(one(), 1, LONG, |_| Err("made twice".to_owned())).await;
        assert!(matches!(again, CacheResult::Failed(why) if &*why == NO_ANSWER), "no second thread is stuck");
        go.send(()).unwrap();
        let retry = async {
            while !matches!(cache.get(one(), 1, LONG, |_| Ok(Vec::new())).await, CacheResult::Ready(_)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, retry).await.expect("the file is read again");
    }

    #[tokio::test]
    async fn retries_when_there_is_memory_again() {
        let cache = cache(100);
        let other = cache.memory.share();
        assert!(other.resize(90));
        let make = |progress: &Progress| match progress.share.resize(40) {
            true => Ok(vec![0; 40]),
            false => Err("no memory".to_owned()),
        };
        assert!(matches!(cache.get(one(), 1, LONG, make).await, CacheResult::Failed(why) if &*why == "no memory"));
        // While memory is short, the incomplete result stays.
        let part = |progress: &Progress| Ok(vec![0; if progress.share.resize(40) { 40 } else { 4 }]);
        for _ in 0..2 {
            assert!(matches!(cache.get(one(), 2, LONG, part).await, CacheResult::Ready(value) if value.len() == 4));
        }
        drop(other);
        for key in [1, 2] {
            assert!(matches!(cache.get(one(), key, LONG, part).await, CacheResult::Ready(value) if value.len() == 40));
        }
    }
}
