//! Formats the capture time of a frame.

use weft_suites::clock::rfc3339;

/// Formats nanoseconds since 1970 as date and time in UTC: `2026-01-31 12:00:00.123456789`.
pub(crate) fn utc(unix_ns: u64) -> String {
    let text = rfc3339(unix_ns / 1_000_000).replace('T', " ");
    let seconds = text.split('.').next().unwrap_or_default();
    format!("{seconds}.{:09}", unix_ns % 1_000_000_000)
}

/// Formats nanoseconds since 1970 as time of the day in UTC, with microseconds: `12:00:00.123456`.
pub(crate) fn time_of_day(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, unix_ns % 1_000_000_000 / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of `date -u -d @1769860800`.
    #[test]
    fn times_are_in_utc() {
        let noon = 1_769_860_800_123_456_789;
        assert_eq!(utc(noon), "2026-01-31 12:00:00.123456789");
        assert_eq!(time_of_day(noon), "12:00:00.123456");
        assert_eq!((utc(0).as_str(), time_of_day(0).as_str()), ("1970-01-01 00:00:00.000000000", "00:00:00.000000"));
    }
}
