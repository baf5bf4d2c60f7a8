//! Whether a stream's task sleeps when there is nothing to do, or looks again at once. To sleep and
//! be woken takes longer than many a wait, and waking costs the peer, too, where it is on the same
//! machine.
//!
//! Looking again pays while waits are short, and a stream finds that out by itself. It begins when
//! a wait would have been over in time, and goes on as long as that stays so. Where a look is in
//! vain until the time is over the task sleeps, and twice as many short waits as before have to go
//! by until it tries again, up to some dozens; each success takes half of them back, and a long
//! wait between them undoes half of those that went by, so that a machine which stops for a moment
//! now and then does not put it to sleep for good. So a stream sleeps if nothing happens on it, or
//! if its peer takes long. If other programs need the processor, the awaited event comes late, and
//! polling takes little of their time.
//!
//! The runtime is what looks, at all its sockets at once. A device therefore needs one task at a
//! time that keeps it awake, or a few where it has several threads. Where many connections are open
//! it does without: it gets several events at a time when it sleeps in between, and reads and
//! writes more of each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::time::Instant;

/// How a task waits while there is nothing to do on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BusyPoll {
    /// It looks again at once where waits turn out to be short, up to 100 us, and sleeps otherwise.
    /// It always sleeps on a machine with one processor, and where the device has more than eight
    /// connections.
    #[default]
    Adaptive,
    /// It looks again for so long before it sleeps: round trips without a wake-up, for a processor
    /// that does nothing else. Never, when this is zero.
    For(Duration),
}

/// A wait that is worth no sleep.
const SHORT: Duration = Duration::from_micros(100);
/// After this number of short waits even a stream that never gained anything tries again: it loses
/// a look of 100 us for each of these rows of waits.
const MOST_DOUBT: u32 = 1 << 6;

/// Connections of a device with which it still looks again of its own accord.
const FEW: usize = 8;

/// Places for those of a device that look again of their own accord.
#[derive(Debug)]
pub(super) struct Places {
    setting: BusyPoll,
    free: AtomicUsize,
    /// Streams of the device.
    streams: AtomicUsize,
}

impl Places {
    /// As many as this machine's processors allow.
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

/// One of the [`Places`], until it is dropped.
#[derive(Debug)]
struct Place<'a>(&'a Places);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

/// What one stream has found out.
#[derive(Debug)]
pub(super) struct Polling<'a> {
    places: &'a Places,
    /// Since when there is nothing to do.
    since: Option<Instant>,
    /// It looks again during this wait.
    place: Option<Place<'a>>,
    /// Short waits since it last looked in vain, up to `doubt`.
    short: u32,
    /// Short waits that it takes to try.
    doubt: u32,
}

impl<'a> Polling<'a> {
    pub(super) fn new(places: &'a Places) -> Self {
        places.streams.fetch_add(1, Ordering::Relaxed);
        Polling { places, since: None, place: None, short: 0, doubt: 1 }
    }

    /// There is nothing to do: look again at once?
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

    /// There is something to do.
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

    /// A stream on a machine with this number of processors, and its clock.
    struct World<'a>(Polling<'a>, Instant);

    impl World<'_> {
        /// A wait of this number of microseconds; for how many of them it looked again.
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
        // One that is longer costs its first part, and sleep comes back.
        assert_eq!([1_000_000, 60, 60, 60].map(|micros| world.wait(micros)), [100, 0, 0, 60]);
    }

    #[test]
    fn a_stream_whose_waits_are_long_sleeps() {
        let places = places(BusyPoll::Adaptive, 1);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        assert_eq!((0..1000).map(|_| world.wait(100)).sum::<u64>(), 0);
    }

    /// Short waits that end in a long one whenever it looks: as if its processor went to others.
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
        // Success brings it back.
        while world.wait(50) == 0 {}
        assert_eq!((0..MOST_DOUBT).map(|_| world.wait(50)).sum::<u64>(), u64::from(MOST_DOUBT) * 50);
        assert_eq!(world.0.doubt, 1);
    }

    /// The processor goes to others for a moment every now and then.
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
        // A stream that ends while it looks leaves its place.
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
        // One processor: nobody else could do anything meanwhile.
        let places = places(BusyPoll::Adaptive, 0);
        let mut world = World(Polling::new(&places), Instant::ORIGIN);
        assert_eq!((0..100).map(|_| world.wait(10)).sum::<u64>(), 0);
    }
}
