//! Whether the tester stood still: its virtual machine was suspended, its process was stopped, or
//! its clock jumped. Meanwhile the target went on, so a failure about time may be the tester's own.
//!
//! A thread looks at two clocks at short intervals. If it was not called for long, or if the two
//! clocks moved by different amounts, the tester stood still.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// A shorter pause is that of a busy machine.
const LEAST: Duration = Duration::from_secs(2);
/// Standstills that are remembered.
const MOST: usize = 100;

/// Watches the clocks for as long as it lives.
#[derive(Debug)]
pub(super) struct Standstill(Arc<Mutex<Looks>>);

impl Standstill {
    /// Begins to watch. Without a thread, only the moments that [`since`](Self::since) is called at
    /// are known.
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

    /// The longest standstill that lasted beyond `begin`.
    pub(super) fn since(&self, begin: Instant) -> Option<Duration> {
        let mut looks = lock(&self.0);
        // The thread may wake up only after the case's own timers.
        looks.look(Instant::now(), clock::unix_ns());
        looks.since(begin)
    }
}

fn lock(looks: &Mutex<Looks>) -> MutexGuard<'_, Looks> {
    // No change panics halfway.
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
        // A stopped process: both clocks go on.
        looks.look(at(31), unix + 31 * SECOND);
        assert_eq!(looks.since(at(1)), Some(Duration::from_secs(30)));
        // A suspended machine: the monotonic clock stops.
        looks.look(at(32), unix + 91 * SECOND);
        assert_eq!(looks.since(at(31)), Some(Duration::from_secs(60)));
        // A calendar that is set back does not matter, nor does what was before the case.
        looks.look(at(33), unix + 33 * SECOND);
        assert_eq!(looks.since(at(32)), None);
    }
}
