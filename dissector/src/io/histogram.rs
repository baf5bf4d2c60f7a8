//! [`Histogram`]: percentiles of latencies in constant memory.
//!
//! Values below 128 ns are exact. Each power of two above has 64 buckets, so a percentile is at
//! most 1.6 % (1/64) larger than the exact value, and never smaller. Minimum and maximum are exact.

use crate::stats::Percentiles;

/// Number of bits of the bucket inside its power of two.
const BUCKET_BITS: u32 = 6;

/// A histogram of latencies in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// Number of values in each bucket. The vector grows up to the bucket of the largest value, and
    /// never has more than 3776 elements.
    counts: Vec<u64>,
    count: u64,
    least: u64,
    most: u64,
}

/// The number of the bucket of `value`.
fn bucket(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(BUCKET_BITS + 1);
    ((shift << BUCKET_BITS) as usize) + (value >> shift) as usize
}

/// The largest value in the bucket `bucket`.
fn largest(bucket: usize) -> u64 {
    let power = 1_usize << BUCKET_BITS;
    let shift = (bucket / power).saturating_sub(1);
    let base = (bucket - shift * power) as u128;
    u64::try_from(((base + 1) << shift) - 1).unwrap_or(u64::MAX)
}

impl Histogram {
    /// Adds a latency in nanoseconds.
    pub(super) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.most = self.most.max(value);
        self.count += 1;
    }

    /// Memory of the buckets in bytes.
    pub(super) fn memory(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }

    /// The percentiles by the method "nearest rank"; `None` if no latency was added.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let at = |percent: u64| {
            let rank = self.count.saturating_mul(percent).div_ceil(100).max(1);
            let mut before = 0;
            let bucket = self.counts.iter().position(|count| {
                before += count;
                before >= rank
            });
            bucket.map_or(self.most, |bucket| largest(bucket).min(self.most))
        };
        (self.count > 0).then(|| Percentiles {
            count: self.count,
            min_ns: self.least,
            p50_ns: at(50),
            p90_ns: at(90),
            p99_ns: at(99),
            max_ns: self.most,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_are_contiguous() {
        assert_eq!([0, 1, 127, 128, 129, 130, 255, 256].map(bucket), [0, 1, 127, 128, 128, 129, 191, 192]);
        assert_eq!((bucket(u64::MAX), largest(bucket(u64::MAX))), (3775, u64::MAX));
        for number in 0..3775 {
            assert_eq!(bucket(largest(number)), number);
            assert_eq!(bucket(largest(number) + 1), number + 1);
        }
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut latencies = Histogram::default();
        assert_eq!(latencies.percentiles(), None);
        (1..=10).rev().for_each(|latency| latencies.add(latency));
        let expected = Percentiles { count: 10, min_ns: 1, p50_ns: 5, p90_ns: 9, p99_ns: 10, max_ns: 10 };
        assert_eq!(latencies.percentiles(), Some(expected));
    }

    proptest! {
        #[test]
        fn percentiles_have_the_documented_precision(values in proptest::collection::vec(0u64..1 << 40, 1..200)) {
            let mut latencies = Histogram::default();
            values.iter().for_each(|value| latencies.add(*value));
            let found = latencies.percentiles().unwrap();
            let mut sorted = values;
            sorted.sort_unstable();
            for (percent, found) in [(50, found.p50_ns), (90, found.p90_ns), (99, found.p99_ns), (100, found.max_ns)] {
                let exact = sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
                prop_assert!(found >= exact && found - exact <= exact / 64, "{percent} %: {found}, exact {exact}");
            }
        }
    }
}
