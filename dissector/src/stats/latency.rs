//! Stores latencies of operations. If there are more than [`MAX_LATENCIES`] operations, only every
//! second latency is stored, and later only every fourth, and so on.

use serde::{Serialize, Serializer};

/// Maximum number of stored latencies.
const MAX_LATENCIES: usize = 1 << 16;

/// Latencies, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    count: u64,
    least: u64,
    most: u64,
    kept: Vec<u64>,
    /// One of 2^`stride` latencies is stored.
    stride: u32,
}

/// Percentiles of latencies in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Number of operations.
    pub count: u64,
    /// Minimum latency.
    pub min_ns: u64,
    /// Latency that 50 % of the operations do not exceed.
    pub p50_ns: u64,
    /// Latency that 90 % of the operations do not exceed.
    pub p90_ns: u64,
    /// Latency that 99 % of the operations do not exceed.
    pub p99_ns: u64,
    /// Maximum latency.
    pub max_ns: u64,
}

impl Latencies {
    /// Adds a latency in nanoseconds.
    pub fn add(&mut self, latency: u64) {
        self.least = if self.count == 0 { latency } else { self.least.min(latency) };
        self.most = self.most.max(latency);
        if self.count.is_multiple_of(1 << self.stride) {
            if self.kept.len() == MAX_LATENCIES {
                let mut at = 0usize;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride += 1;
            }
            if self.count.is_multiple_of(1 << self.stride) {
                self.kept.push(latency);
            }
        }
        self.count += 1;
    }

    /// Used memory in bytes. The value never decreases.
    pub(super) fn memory(&self) -> usize {
        self.kept.capacity() * size_of::<u64>()
    }

    /// Returns whether no latency was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The percentiles, computed with the method "nearest rank"; `None` if no latency was added.
    #[must_use]
    pub fn percentiles(&self) -> Option<Percentiles> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let rank = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied();
        Some(Percentiles {
            count: self.count,
            min_ns: self.least,
            p50_ns: rank(50)?,
            p90_ns: rank(90)?,
            p99_ns: rank(99)?,
            max_ns: self.most,
        })
    }
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.percentiles().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentiles(), None);
        (1..=10).rev().for_each(|latency| latencies.add(latency));
        let expected = Percentiles { count: 10, min_ns: 1, p50_ns: 5, p90_ns: 9, p99_ns: 10, max_ns: 10 };
        assert_eq!(latencies.percentiles(), Some(expected));
    }

    #[test]
    fn many_are_sampled_evenly_and_the_ends_stay_exact() {
        let mut latencies = Latencies::default();
        let count = 1_000_000;
        (0..count).for_each(|latency| latencies.add(latency));
        let found = latencies.percentiles().unwrap();
        assert_eq!((found.count, found.min_ns, found.max_ns), (count, 0, count - 1));
        assert!(found.p50_ns.abs_diff(count / 2) < 64 && found.p99_ns.abs_diff(count / 100 * 99) < 64);
        assert!(latencies.kept.len() <= MAX_LATENCIES);
    }
}
