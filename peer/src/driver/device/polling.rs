//! Decides whether a stream's task sleeps when it has nothing to do, or polls again at once (busy
//! polling). Sleeping and waking up can take longer than the wait for new work. If the peer runs on
//! the same machine, the wake-up delays the peer too.
//!
//! Busy polling saves time only while waits are short. Each stream measures its own waits:
//!
//! - A stream starts to busy-poll after enough short waits. At first, one short wait is enough. The
//!   stream continues to busy-poll as long as waits stay short.
//! - If a busy-polled wait exceeds 100 us, the task sleeps. The number of short waits before the
//!   next attempt then doubles, up to 64. Each busy poll that finds work halves this number.
//! - A long wait while the stream does not busy-poll halves the count of short waits. The count is
//!   not reset to zero. Therefore a stream on a machine with occasional pauses continues to
//!   busy-poll.
//!
//! A stream on which nothing happens, or whose peer is slow, therefore sleeps. If other programs
//! need the processor, waits become long. The stream then rarely busy-polls, and takes little time
//! from the other programs.
//!
//! The runtime polls all its sockets at once. Therefore one busy-polling task for each device is
//! enough, or a few if the runtime has several threads. If a device has many connections, none of
//! its tasks busy-polls: several events arrive during one sleep, and one wake-up handles all of
//! them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::time::Instant;

/// How a task waits while its connection has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BusyPoll {
    /// The task polls again at once, for at most 100 us, if recent waits were short. Otherwise the
    /// task sleeps. It always sleeps if the machine has one processor, or if the device has more
    /// than eight connections.
    #[default]
    Adaptive,
    /// The task always polls for this time before it sleeps. Round trips need no wake-up, but one
    /// processor is busy all the time. Zero means that the task never busy-polls.
    For(Duration),
}

/// A wait below this time counts as short. In adaptive mode, a task busy-polls for at most this
/// time.
const SHORT: Duration = Duration::from_micros(100);
/// Maximum of [`Polling::required_short_waits`]. Even a stream that never gains from busy polling
/// starts a new attempt after this number of short waits. Each attempt costs 100 us.
const MAX_SHORT_WAITS: u32 = 1 << 6;

/// In adaptive mode, the tasks of a device do not busy-poll if the device has more streams than
/// this number.
const MAX_POLLED_STREAMS: usize = 8;

/// Limits how many streams of a device busy-poll at the same time in adaptive mode.
#[derive(Debug)]
pub(super) struct PollPermits {
    setting: BusyPoll,
    free: AtomicUsize,
    /// Number of streams of the device.
    streams: AtomicUsize,
}

impl PollPermits {
    /// Allows one stream to busy-poll for every two processors of this machine.
    pub(super) fn new(setting: BusyPoll) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        PollPermits { setting, free: AtomicUsize::new(processors / 2), streams: AtomicUsize::new(0) }
    }

    fn acquire(&self) -> Option<PollPermit<'_>> {
        if self.streams.load(Ordering::Relaxed) > MAX_POLLED_STREAMS {
            return None;
        }
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        taken.is_ok().then(|| PollPermit(self))
    }
}

/// The permission of one stream to busy-poll. Dropping this value ends the permission.
#[derive(Debug)]
struct PollPermit<'a>(&'a PollPermits);

impl Drop for PollPermit<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

/// Decides for one stream whether its task busy-polls. The decision depends on how long the last
/// waits of the stream were.
#[derive(Debug)]
pub(super) struct Polling<'a> {
    permits: &'a PollPermits,
    /// Time at which the stream had no more work. `None` while it has work.
    since: Option<Instant>,
    /// Present while the stream busy-polls in adaptive mode.
    permit: Option<PollPermit<'a>>,
    /// Number of short waits without busy polling since the last busy poll that found no work. Each
    /// long wait without busy polling halves the number. The maximum is `required_short_waits`.
    short_waits: u32,
    /// Number of short waits before the next attempt to busy-poll.
    required_short_waits: u32,
}

impl<'a> Polling<'a> {
    pub(super) fn new(permits: &'a PollPermits) -> Self {
        permits.streams.fetch_add(1, Ordering::Relaxed);
        Polling { permits, since: None, permit: None, short_waits: 0, required_short_waits: 1 }
    }

    /// Notes that the stream has nothing to do. Returns whether the task polls again at once
    /// instead of sleeping.
    pub(super) fn should_poll(&mut self, now: Instant) -> bool {
        let first = self.since.is_none();
        let waited = now.saturating_duration_since(*self.since.get_or_insert(now));
        if let BusyPoll::For(time) = self.permits.setting {
            return waited < time;
        }
        if first && self.short_waits >= self.required_short_waits {
            self.permit = self.permits.acquire();
        } else if waited >= SHORT && self.permit.is_some() {
            self.poll_timed_out();
        }
        self.permit.is_some()
    }

    /// Notes that the stream has something to do again.
    pub(super) fn work_arrived(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let was_short = now.saturating_duration_since(since) < SHORT;
        match (self.permit.take(), was_short) {
            (Some(_), true) => self.required_short_waits = (self.required_short_waits / 2).max(1),
            (Some(_), false) => self.poll_timed_out(),
            (None, true) => self.short_waits = self.required_short_waits.min(self.short_waits + 1),
            (None, false) => self.short_waits /= 2,
        }
    }

    fn poll_timed_out(&mut self) {
        self.permit = None;
        self.short_waits = 0;
        self.required_short_waits = (self.required_short_waits * 2).min(MAX_SHORT_WAITS);
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.permits.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream, and its clock.
    struct SimulatedStream<'a>(Polling<'a>, Instant);

    impl SimulatedStream<'_> {
        /// Simulates a wait of `micros` microseconds. Returns for how many microseconds the stream
        /// busy-polled.
        fn wait(&mut self, micros: u64) -> u64 {
            let SimulatedStream(polling, now) = self;
            let looked = (0..micros).filter(|_| {
                let looks = polling.should_poll(*now);
                *now = *now + Duration::from_micros(1);
                looks
            });
            let looked = looked.count() as u64;
            polling.work_arrived(*now);
            looked
        }
    }

    fn permits(setting: BusyPoll, free: usize) -> PollPermits {
        PollPermits { setting, free: AtomicUsize::new(free), streams: AtomicUsize::new(0) }
    }

    #[test]
    fn short_waits_are_passed_awake() {
        let permits = permits(BusyPoll::Adaptive, 1);
        let mut stream = SimulatedStream(Polling::new(&permits), Instant::ORIGIN);
        assert_eq!(stream.wait(60), 0, "the stream has not observed a short wait yet");
        assert_eq!([60, 1, 99].map(|micros| stream.wait(micros)), [60, 1, 99]);
        // During a longer wait, the stream polls for only 100 us. It then sleeps during the next
        // two waits.
        assert_eq!([1_000_000, 60, 60, 60].map(|micros| stream.wait(micros)), [100, 0, 0, 60]);
    }

    #[test]
    fn a_stream_whose_waits_are_long_sleeps() {
        let permits = permits(BusyPoll::Adaptive, 1);
        let mut stream = SimulatedStream(Polling::new(&permits), Instant::ORIGIN);
        assert_eq!((0..1000).map(|_| stream.wait(100)).sum::<u64>(), 0);
    }

    /// In this test, a wait is long each time that the stream busy-polls. All other waits are
    /// short. On a real machine, this happens if another program takes the processor during each
    /// busy poll. The test shows that busy polls become rare.
    #[test]
    fn looks_in_vain_become_rare() {
        let permits = permits(BusyPoll::Adaptive, 1);
        let mut stream = SimulatedStream(Polling::new(&permits), Instant::ORIGIN);
        let waits = 100_000;
        let mut looked = 0;
        for _ in 0..waits {
            let asks = stream.0.short_waits >= stream.0.required_short_waits;
            looked += stream.wait(if asks { 200 } else { 50 });
        }
        let times = looked / 100;
        assert!((1_500..1_600).contains(&times), "{times} times in {waits} waits");
        // Each busy poll that finds work halves the number of waits before the next attempt.
        while stream.wait(50) == 0 {}
        assert_eq!((0..MAX_SHORT_WAITS).map(|_| stream.wait(50)).sum::<u64>(), u64::from(MAX_SHORT_WAITS) * 50);
        assert_eq!(stream.0.required_short_waits, 1);
    }

    /// Some waits are long, because the processor runs other programs for a moment. The
    /// stream still busy-polls most of the time.
    #[test]
    fn a_long_wait_now_and_then_does_not_put_it_to_sleep_for_good() {
        let permits = permits(BusyPoll::Adaptive, 1);
        let mut stream = SimulatedStream(Polling::new(&permits), Instant::ORIGIN);
        stream.0.required_short_waits = MAX_SHORT_WAITS;
        let looked = (0..10_000).filter(|wait| stream.wait(if wait % 50 == 0 { 300 } else { 30 }) > 0).count();
        assert!(looked > 9_000, "{looked} of 10000 waits");
    }

    #[test]
    fn only_so_many_look_at_once() {
        let permits = permits(BusyPoll::Adaptive, 1);
        let [mut one, mut other] = [(); 2].map(|()| SimulatedStream(Polling::new(&permits), Instant::ORIGIN));
        assert_eq!([one.wait(1), other.wait(1)], [0, 0]);
        assert!(one.0.should_poll(one.1));
        assert_eq!(other.wait(50), 0);
        one.0.work_arrived(one.1);
        assert_eq!(other.wait(50), 50);
        // A stream that ends while it busy-polls releases its permission.
        assert!(other.0.should_poll(other.1));
        drop(other);
        assert_eq!(one.wait(50), 50);
    }

    #[test]
    fn a_device_with_many_connections_sleeps() {
        let permits = permits(BusyPoll::Adaptive, 1);
        let mut stream = SimulatedStream(Polling::new(&permits), Instant::ORIGIN);
        let others: Vec<Polling> = (0..MAX_POLLED_STREAMS).map(|_| Polling::new(&permits)).collect();
        assert_eq!([10, 10].map(|micros| stream.wait(micros)), [0, 0]);
        drop(others);
        assert_eq!(stream.wait(10), 10);
    }

    #[test]
    fn a_setting_is_kept_whatever_comes() {
        for (time, looked) in [(0, [0, 0]), (70, [50, 70])] {
            let permits = permits(BusyPoll::For(Duration::from_micros(time)), 0);
            let mut stream = SimulatedStream(Polling::new(&permits), Instant::ORIGIN);
            for _ in 0..3 {
                assert_eq!([50, 1000].map(|micros| stream.wait(micros)), looked);
            }
        }
        // The value 0 means that the machine has one processor. Nothing else could run during busy
        // polling, so the stream always sleeps.
        let permits = permits(BusyPoll::Adaptive, 0);
        let mut stream = SimulatedStream(Polling::new(&permits), Instant::ORIGIN);
        assert_eq!((0..100).map(|_| stream.wait(10)).sum::<u64>(), 0);
    }
}
