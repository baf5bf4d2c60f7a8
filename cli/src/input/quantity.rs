//! Numbers on the command line of a live capture.

use std::time::Duration;

/// Parses a positive number of seconds, which may have a fraction.
pub(super) fn seconds(value: &str) -> Option<Duration> {
    let seconds = value.parse::<f64>().ok().filter(|seconds| *seconds > 0.0)?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses a positive number.
pub(super) fn count(value: &str) -> Option<u64> {
    value.parse().ok().filter(|count| *count > 0)
}

/// Parses a positive number of kilobytes and returns bytes. As in tshark, 1 kB is 1000 bytes.
pub(super) fn kilobytes(value: &str) -> Option<u64> {
    count(value)?.checked_mul(1000)
}
