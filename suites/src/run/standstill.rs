//! Detects a standstill of the tester: its virtual machine was suspended, its process was stopped,
//! or its clock jumped. The target continues meanwhile, so the tester itself may cause a failure
//! that depends on time.
//!
//! A thread reads a monotonic clock and the calendar clock at short intervals. The tester stood
//! still if either clock moved by at least `MIN_STANDSTILL` between two readings. While a machine
//! is suspended, only the calendar clock moves.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;

/// Interval between two readings of the clocks.
const INTERVAL: Duration = Duration::from_millis(100);
/// Minimum length of a standstill. On a busy machine, shorter pauses are normal.
const MIN_STANDSTILL: Duration = Duration::from_secs(2);
/// Maximum number of standstills that are remembered.
const MAX_STANDSTILLS: usize = 100;

/// Watches the clocks until it is dropped.
#[derive(Debug)]
pub(super) struct Standstill(Arc<Mutex<ClockReadings>>);

impl Standstill {
    /// Begins to watch. If no thread can be started, the clocks are read only when
    /// [`since`](Self::since) is called.
    pub(super) fn watch() -> Self {
        let readings = Arc::new(Mutex::new(ClockReadings::begin(Instant::now(), clock::unix_ns())));
        let watched = Arc::downgrade(&readings);
        let begun = thread::Builder::new().name("clocks".to_owned()).spawn(move || {
            while let Some(readings) = Weak::upgrade(&watched) {
                lock(&readings).read(Instant::now(), clock::unix_ns());
                drop(readings);
                thread::sleep(INTERVAL);
            }
        });
        if let Err(error) = begun {
            tracing::warn!(%error, "cannot start the thread that watches the clocks");
        }
        Standstill(readings)
    }

    /// Returns the length of the longest standstill that ended after `begin`.
    pub(super) fn since(&self, begin: Instant) -> Option<Duration> {
        let mut readings = lock(&self.0);
        // The thread may wake up later than the timers of the case, so read the clocks here, too.
        readings.read(Instant::now(), clock::unix_ns());
        readings.since(begin)
    }
}

fn lock(readings: &Mutex<ClockReadings>) -> MutexGuard<'_, ClockReadings> {
    // No change to `ClockReadings` panics halfway, so a poisoned lock is safe to use.
    readings.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct ClockReadings {
    last: Instant,
    last_unix_ns: u64,
    /// The end and the length of each standstill.
    found: Vec<(Instant, Duration)>,
}

impl ClockReadings {
    fn begin(now: Instant, unix_ns: u64) -> Self {
        ClockReadings { last: now, last_unix_ns: unix_ns, found: Vec::new() }
    }

    fn read(&mut self, now: Instant, unix_ns: u64) {
        let monotonic = now.saturating_duration_since(self.last);
        let calendar = Duration::from_nanos(unix_ns.saturating_sub(self.last_unix_ns));
        let length = monotonic.max(calendar);
        if length >= MIN_STANDSTILL {
            if self.found.len() >= MAX_STANDSTILLS {
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
        let mut readings = ClockReadings::begin(begin, unix);
        readings.read(at(1), unix + SECOND);
        assert_eq!(readings.since(begin), None);
        // If the process is stopped, both clocks continue.
        readings.read(at(31), unix + 31 * SECOND);
        assert_eq!(readings.since(at(1)), Some(Duration::from_secs(30)));
        // If the machine is suspended, the monotonic clock stops.
        readings.read(at(32), unix + 91 * SECOND);
        assert_eq!(readings.since(at(31)), Some(Duration::from_secs(60)));
        // Neither a calendar clock that is set back nor a standstill before the case counts.
        readings.read(at(33), unix + 33 * SECOND);
        assert_eq!(readings.since(at(32)), None);
    }
}
