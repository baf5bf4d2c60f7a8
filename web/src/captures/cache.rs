//! What was read of captures, as long as there is room: the least used leaves first. What is being read is read once, whoever asks; it
//! is read to its end, also when all who asked are gone.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::work::{Asker, Workers};

/// Things at a time, whatever their size.
const MOST: usize = 256;

/// How far something is read.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Frames.
    pub(crate) frames: AtomicU64,
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
    /// Octets.
    room: usize,
    size: fn(&V) -> usize,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Cache { slots: Arc::clone(&self.slots), workers: self.workers.clone(), room: self.room, size: self.size }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, V: Send + Sync + 'static> Cache<K, V> {
    pub(crate) fn new(workers: Workers, room: usize, size: fn(&V) -> usize) -> Self {
        let slots = Arc::new(Mutex::new(Slots { by_key: HashMap::new(), clock: 0 }));
        Cache { slots, workers, room, size }
    }

    /// What is there already.
    pub(crate) fn known(&self, key: &K) -> Told<V> {
        self.held().by_key.get(key)?.told.borrow().clone()
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
            Some(None) => Got::Failed("reading broke off".into()),
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
        if let Some(slot) = slots.by_key.get_mut(&key) {
            slot.used = used;
            return Some((slot.told.clone(), Arc::clone(&slot.progress)));
        }
        let ticket = self.workers.ticket(asker)?;
        let (tell, told) = watch::channel(None);
        let progress = Arc::new(Progress::default());
        slots.by_key.insert(key.clone(), Slot { told: told.clone(), progress: Arc::clone(&progress), used });
        drop(slots);
        let (cache, shared) = (self.clone(), Arc::clone(&progress));
        tokio::spawn(async move {
            match ticket.work(move || make(&shared)).await {
                Some(made) => {
                    tell.send_replace(Some(made.map(Arc::new).map_err(Arc::from)));
                    cache.make_room();
                }
                None => {
                    cache.held().by_key.remove(&key);
                }
            }
        });
        Some((told, progress))
    }

    /// Lets go of what was used longest ago, until the rest fits.
    fn make_room(&self) {
        let mut slots = self.held();
        let mut done: Vec<(u64, K, usize)> = Vec::new();
        for (key, slot) in &slots.by_key {
            if let Some(told) = &*slot.told.borrow() {
                done.push((slot.used, key.clone(), told.as_ref().map_or(0, |value| (self.size)(value))));
            }
        }
        done.sort_unstable_by_key(|(used, ..)| *used);
        let mut octets: usize = done.iter().map(|(.., size)| size).sum();
        let mut count = done.len();
        // The newest stays: somebody waits for it.
        done.pop();
        for (_, key, size) in done {
            if octets <= self.room && count <= MOST {
                break;
            }
            slots.by_key.remove(&key);
            octets -= size;
            count -= 1;
        }
    }

    /// Nothing under this lock panics half-way.
    fn held(&self) -> MutexGuard<'_, Slots<K, V>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    fn cache(room: usize) -> Cache<u32, Vec<u8>> {
        let limits = WorkLimits { threads: 1, places: 2, reserved: 0, owner: 2 };
        Cache::new(Workers::new(limits), room, Vec::len)
    }

    #[tokio::test]
    async fn it_is_made_once_and_the_least_used_leaves() {
        let cache = cache(100);
        let made = Arc::new(AtomicU64::new(0));
        let get = async |key: u32| {
            let made = Arc::clone(&made);
            let make = move |_: &Progress| {
                made.fetch_add(1, Relaxed);
                Ok(vec![0; 40])
            };
            assert!(matches!(cache.get(one(), key, LONG, make).await, Got::Ready(value) if value.len() == 40));
        };
        for key in [1, 2, 1, 3, 1] {
            get(key).await;
        }
        assert_eq!(made.load(Relaxed), 3, "1 was used since, 2 left");
        // Room is made behind the answer.
        while cache.known(&2).is_some() {
            tokio::task::yield_now().await;
        }
        assert!(cache.known(&1).is_some() && cache.known(&3).is_some());
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
        assert!(matches!(broken, Got::Failed(why) if &*why == "reading broke off"));
        while !matches!(cache.get(one(), 2, LONG, |_| Ok(Vec::new())).await, Got::Ready(_)) {
            tokio::task::yield_now().await;
        }
    }
}
