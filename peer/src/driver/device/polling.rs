//! Decides whether a stream's task sleeps when it has nothing to do, or polls again at once (busy
//! polling). Sleeping and waking up often takes longer than the wait itself. If the peer runs on
//! the same machine, the wake-up delays the peer too.
//!
//! Busy polling pays while waits are short. Each stream measures this by itself:
//!
//! - A stream starts to busy-poll after enough short waits, at first after one. It continues as
//!   long as waits stay short.
//! - If a busy-polled wait exceeds its time, the task sleeps. The number of short waits before the
//!   next attempt then doubles, up to 64. Each success halves the number.
//! - A long wait while the stream does not busy-poll halves the count of short waits. It does not
//!   reset the count, so a machine that pauses now and then does not stop busy polling for good.
//!
//! A stream on which nothing happens, or whose peer is slow, therefore sleeps. If other programs
//! need the processor, waits become long, and polling takes little of their time.
//!
//! The runtime polls all its sockets at once. Per device, one task that keeps the runtime awake is
//! therefore enough, or a few if the runtime has several threads. With many open connections no
//! task busy-polls: during a sleep several events arrive, and each wake-up then reads and writes
//! more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::time::Instant;

/// How a task waits while its connection has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BusyPoll {
    /// Polls again at once, for at most 100 us, if waits have been short, and sleeps otherwise.
    /// Always sleeps on a machine with one processor, and if the device has more than eight
    /// connections.
    #[default]
    Adaptive,
    /// Always polls for this time before it sleeps. Round trips need no wake-up, but one processor
    /// is busy all the time. Zero means that the task never busy-polls.
    For(Duration),
}

/// A wait below this time counts as short. An adaptive task busy-polls for at most this time.
const SHORT: Duration = Duration::from_micros(100);
/// Maximum of [`Polling::doubt`]. Even a stream for which busy polling never pays tries again after
/// this number of short waits. Each try costs 100 us.
const MOST_DOUBT: u32 = 1 << 6;

/// Maximum number of streams of a device with which an adaptive task may busy-poll.
const FEW: usize = 8;

/// Limits how many streams of a device busy-poll at the same time in adaptive mode.
#[derive(Debug)]
pub(super) struct Places {
    setting: BusyPoll,
    free: AtomicUsize,
    /// Number of streams of the device.
    streams: AtomicUsize,
}

impl Places {
    /// Allows half as many streams to busy-poll as this machine has processors.
    pub(super) fn new(setting: BusyPoll) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Places { setting, free: AtomicUsize::new(processors / 2), streams: AtomicUsize::new(0) }
    }

    fn take(&self) -> Option<Place<'_>> {
        if self.streams.load(Ordering::Relaxed) > FEW {
            return None;
        }
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        taken.is_ok().then(|| Place(self))
    }
}

/// The permission of one stream to busy-poll, until it is dropped.
#[derive(Debug)]
struct Place<'a>(&'a Places);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

/// What one stream has measured.
#[derive(Debug)]
pub(super) struct Polling<'a> {
    places: &'a Places,
    /// Since when the stream has nothing to do. `None` while it works.
    since: Option<Instant>,
    /// Held while the stream busy-polls in adaptive mode.
    place: Option<Place<'a>>,
    /// Number of short waits since busy polling last failed, at most `doubt`. Long waits halve it.
    short: u32,
    /// Number of short waits before the next attempt to busy-poll.
    doubt: u32,
}

impl<'a> Polling<'a> {
    pub(super) fn new(places: &'a Places) -> Self {
        places.streams.fetch_add(1, Ordering::Relaxed);
        Polling { places, since: None, place: None, short: 0, doubt: 1 }
    }

    /// The stream has nothing to do. Returns whether the task polls again at once instead of
    /// sleeping.
    pub(super) fn looks_again(&mut self, now: Instant) -> bool {
        let first = self.since.is_none();
        let waited = now.saturating_duration_since(*self.since.get_or_insert(now));
        if let BusyPoll::For(time) = self.places.setting {
            return waited < time;
        }
        if first && self.short >= self.doubt {
            self.place = self.places.take();
        } else if waited >= SHORT && self.place.is_some() {
            self.looked_in_vain();
        }
        self.place.is_some()
    }

    /// The stream has something to do again.
    pub(super) fn goes_on(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let was_short = now.saturating_duration_since(since) < SHORT;
        match (self.place.take(), was_short) {
            (Some(_), true) => self.doubt = (self.doubt / 2).max(1),
            (Some(_), false) => self.looked_in_vain(),
            (None, true) => self.short = self.doubt.min(self.short + 1),
            (None, false) => self.short /= 2,
        }
    }

    fn looked_in_vain(&mut self) {
        self.place = None;
        self.short = 0;
        self.doubt = (self.doubt * 2).min(MOST_DOUBT);
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.places.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream, and its clock.
    struct World<'a>(Polling<'a>, Instant);

    impl World<'_> {
        /// Simulates a wait of `micros` microseconds. Returns for how many of them the stream
        /// busy-polled.
        fn wait(&mut self, micros: u64) -> u64 {
            let World(polling, now) = self;
            let looked = (0..micros).filter(|_| {
                let looks = polling.looks_again(*now);
                *now = *now + Duration::from_micros(1);
                looks
            });
            let looked = looked.count() as u64;
            polling.goes_on(*now);
            looked
        }
    }

    fn places(setting: BusyPoll, free: usize) -> Places {
        Places { setting, free: AtomicUsize::new(free), streams: AtomicUsize::new(0) }
    }

    #[test]
    fn short_waits_are_passed_awake() {
        let places = places(BusyPoll::Adaptive, 1);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        assert_eq!(world.wait(60), 0, "nothing is known yet");
        assert_eq!([60, 1, 99].map(|micros| world.wait(micros)), [60, 1, 99]);
        // A longer wait is polled for 100 us only. Then the stream sleeps through the next waits.
        assert_eq!([1_000_000, 60, 60, 60].map(|micros| world.wait(micros)), [100, 0, 0, 60]);
    }

    #[test]
    fn a_stream_whose_waits_are_long_sleeps() {
        let places = places(BusyPoll::Adaptive, 1);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        assert_eq!((0..1000).map(|_| world.wait(100)).sum::<u64>(), 0);
    }

    /// Each wait that is busy-polled is long, and all others are short: as if the processor were
    /// taken away.
    #[test]
    fn looks_in_vain_become_rare() {
        let places = places(BusyPoll::Adaptive, 1);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        let waits = 100_000;
        let mut looked = 0;
        for _ in 0..waits {
            let asks = world.0.short >= world.0.doubt;
            looked += world.wait(if asks { 200 } else { 50 });
        }
        let times = looked / 100;
        assert!((1_500..1_600).contains(&times), "{times} times in {waits} waits");
        // Each success halves the number of waits before an attempt.
        while world.wait(50) == 0 {}
        assert_eq!((0..MOST_DOUBT).map(|_| world.wait(50)).sum::<u64>(), u64::from(MOST_DOUBT) * 50);
        assert_eq!(world.0.doubt, 1);
    }

    /// The processor runs other programs for a moment every now and then.
    #[test]
    fn a_long_wait_now_and_then_does_not_put_it_to_sleep_for_good() {
        let places = places(BusyPoll::Adaptive, 1);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        world.0.doubt = MOST_DOUBT;
        let looked = (0..10_000).filter(|wait| world.wait(if wait % 50 == 0 { 300 } else { 30 }) > 0).count();
        assert!(looked > 9_000, "{looked} of 10000 waits");
    }

    #[test]
    fn only_so_many_look_at_once() {
        let places = places(BusyPoll::Adaptive, 1);
        let [mut one, mut other] = [(); 2].map(|()| World(Polling::new(&places), Instant::ORIGIN));
        assert_eq!([one.wait(1), other.wait(1)], [0, 0]);
        assert!(one.0.looks_again(one.1));
        assert_eq!(other.wait(50), 0);
        one.0.goes_on(one.1);
        assert_eq!(other.wait(50), 50);
        // A stream that ends while it busy-polls releases its permission.
        assert!(other.0.looks_again(other.1));
        drop(other);
        assert_eq!(one.wait(50), 50);
    }

    #[test]
    fn a_device_with_many_connections_sleeps() {
        let places = places(BusyPoll::Adaptive, 1);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        let others: Vec<Polling> = (0..FEW).map(|_| Polling::new(&places)).collect();
        assert_eq!([10, 10].map(|micros| world.wait(micros)), [0, 0]);
        drop(others);
        assert_eq!(world.wait(10), 10);
    }

    #[test]
    fn a_setting_is_kept_whatever_comes() {
        for (time, looked) in [(0, [0, 0]), (70, [50, 70])] {
            let places = places(BusyPoll::For(Duration::from_micros(time)), 0);
            let mut world = World(Polling::new(&places), Instant::ORIGIN);
            for _ in 0..3 {
                assert_eq!([50, 1000].map(|micros| world.wait(micros)), looked);
            }
        }
        // With one processor, nothing else could run during busy polling.
        let places = places(BusyPoll::Adaptive, 0);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        assert_eq!((0..100).map(|_| world.wait(10)).sum::<u64>(), 0);
    }
}
