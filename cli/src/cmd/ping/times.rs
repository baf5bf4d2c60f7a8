//! Collects the durations of the rounds in bounded memory.

use std::time::Duration;

/// Maximum number of stored durations.
const MAX_STORED: usize = 1 << 16;

/// The exact minimum and maximum of all durations, and a sample of the durations for the median.
#[derive(Debug, Default)]
pub(super) struct Times {
    rounds: u64,
    least: Duration,
    most: Duration,
    kept: Vec<Duration>,
    /// One of 2^`sparse` durations is stored.
    sparse: u32,
}

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.least = if self.rounds == 0 { time } else { self.least.min(time) };
        self.most = self.most.max(time);
        if self.rounds.trailing_zeros() >= self.sparse {
            if self.kept.len() == MAX_STORED {
                // Drop every second stored duration, and store only half as many from now on.
                let mut number = 0;
                self.kept.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.sparse += 1;
            }
            if self.rounds.trailing_zeros() >= self.sparse {
                self.kept.push(time);
            }
        }
        self.rounds += 1;
    }

    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Minimum, median and maximum. Returns zeros before the first round.
    pub(super) fn summary(&mut self) -> [Duration; 3] {
        self.kept.sort_unstable();
        [self.least, self.kept.get(self.kept.len() / 2).copied().unwrap_or_default(), self.most]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_times_have_an_exact_summary() {
        assert_eq!(Times::default().summary(), [Duration::ZERO; 3]);
        let mut times = Times::default();
        [30, 10, 20].into_iter().for_each(|us| times.add(Duration::from_micros(us)));
        assert_eq!(times.summary(), [10, 20, 30].map(Duration::from_micros));
        assert_eq!(times.rounds(), 3);
    }

    #[test]
    fn many_times_have_a_sampled_median() {
        let mut times = Times::default();
        let rounds = 10 * MAX_STORED as u64;
        (0..rounds).for_each(|us| times.add(Duration::from_micros(us)));
        assert!(times.kept.len() <= MAX_STORED && times.kept.capacity() <= 2 * MAX_STORED, "{}", times.kept.len());
        let [least, median, most] = times.summary();
        assert_eq!((least, most, times.rounds()), (Duration::ZERO, Duration::from_micros(rounds - 1), rounds));
        let half = Duration::from_micros(rounds / 2);
        assert!(median.abs_diff(half) < half / 100, "{median:?}");
    }
}
