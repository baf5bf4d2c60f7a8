//! Calendar time and durations, for names, reports and pages. Verdicts do not depend on them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns nanoseconds since 1970-01-01 UTC, or 0 if the machine's clock is set to an earlier time.
#[must_use]
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Formats milliseconds since 1970-01-01 UTC as `2026-01-31T12:00:00.123Z`.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> String {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    // Converts days to year, month and day in the Gregorian calendar. The calculation uses eras of
    // 400 years that begin on 1 March.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    let (seconds, ms) = (ms / 1000 % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

/// Formats microseconds for readers: `0.4 ms`, `12.3 s`.
#[must_use]
pub fn duration(us: u64) -> String {
    match us {
        0..1_000_000 => format!("{}.{} ms", us / 1000, us % 1000 / 100),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of `date -u -d @...`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(1_769_860_800_123), "2026-01-31T12:00:00.123Z");
        assert_eq!(rfc3339(4_102_444_800_000), "2100-01-01T00:00:00.000Z");
    }

    #[test]
    fn durations_are_short() {
        assert_eq!(duration(0), "0.0 ms");
        assert_eq!(duration(1_234), "1.2 ms");
        assert_eq!(duration(12_345_678), "12.3 s");
    }
}
