//! Detects a standstill of the tester: its virtual machine was suspended, its process was stopped,
//! or its clock jumped. The target continues meanwhile, so the tester itself may cause a failure
//! that depends on time.
//!
//! A thread reads two clocks at short intervals. The tester stood still if the thread did not run
//! for a long time, or if the two clocks moved by different amounts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;

/// Interval between two readings of the clocks.
const INTERVAL: Duration = Duration::from_millis(100);
/// Minimum length of a standstill. On a busy machine, shorter pauses are normal.
const LEAST: Duration = Duration::from_secs(2);
/// Maximum number of standstills that are remembered.
const MOST: usize = 100;

/// Watches the clocks until it is dropped.
#[derive(Debug)]
pub(super) struct Standstill(Arc<Mutex<Looks>>);

impl Standstill {
    /// Begins to watch. If no thread can be started, the clocks are read only when
    /// [`since`](Self::since) is called.
    pub(super) fn watch() -> Self {
        let looks = Arc::new(Mutex::new(Looks::begin(Instant::now(), clock::unix_ns())));
        let watched = Arc::downgrade(&looks);
        let begun = thread::Builder::new().name("clocks".to_owned()).spawn(move || {
            while let Some(looks) = Weak::upgrade(&watched) {
                lock(&looks).look(Instant::now(), clock::unix_ns());
                drop(looks);
                thread::sleep(INTERVAL);
            }
        });
        if let Err(error) = begun {
            tracing::warn!(%error, "no thread watches the clocks");
        }
        Standstill(looks)
    }

    /// Returns the length of the longest standstill that ended after `begin`.
    pub(super) fn since(&self, begin: Instant) -> Option<Duration> {
        let mut looks = lock(&self.0);
        // The thread may wake up later than the timers of the case.
        looks.look(Instant::now(), clock::unix_ns());
        looks.since(begin)
    }
}

fn lock(looks: &Mutex<Looks>) -> MutexGuard<'_, Looks> {
    // No change to `Looks` panics halfway.
    looks.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Looks {
    last: Instant,
    last_unix_ns: u64,
    /// The end and the length of each standstill.
    found: Vec<(Instant, Duration)>,
}

impl Looks {
    fn begin(now: Instant, unix_ns: u64) -> Self {
        Looks { last: now, last_unix_ns: unix_ns, found: Vec::new() }
    }

    fn look(&mut self, now: Instant, unix_ns: u64) {
        let monotonic = now.saturating_duration_since(self.last);
        let calendar = Duration::from_nanos(unix_ns.saturating_sub(self.last_unix_ns));
        let length = monotonic.max(calendar);
        if length >= LEAST {
            if self.found.len() >= MOST {
                self.found.remove(0);
            }
            self.found.push((now, length));
        }
        (self.last, self.last_unix_ns) = (now, unix_ns);
    }

    fn since(&self, begin: Instant) -> Option<Duration> {
        self.found.iter().filter(|(end, _)| *end > begin).map(|(_, length)| *length).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_pause_of_either_clock_is_a_standstill() {
        let (begin, unix) = (Instant::now(), 1_800_000_000 * SECOND);
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut looks = Looks::begin(begin, unix);
        looks.look(at(1), unix + SECOND);
        assert_eq!(looks.since(begin), None);
        // A stopped process: both clocks continue.
        looks.look(at(31), unix + 31 * SECOND);
        assert_eq!(looks.since(at(1)), Some(Duration::from_secs(30)));
        // A suspended machine: the monotonic clock stops.
        looks.look(at(32), unix + 91 * SECOND);
        assert_eq!(looks.since(at(31)), Some(Duration::from_secs(60)));
        // Neither a calendar clock that is set back nor a standstill before the case counts.
        looks.look(at(33), unix + 33 * SECOND);
        assert_eq!(looks.since(at(32)), None);
    }
}
