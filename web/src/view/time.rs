//! Times for people.

use weft_suites::clock;

/// Formats milliseconds since 1970 as `2026-01-31 12:00:00 UTC`.
pub(super) fn utc(unix_ms: u64) -> String {
    let time = clock::rfc3339(unix_ms);
    let (date, time) = time.split_once('T').unwrap_or((&time, ""));
    format!("{date} {} UTC", time.split('.').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_around_leap_days() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds * 1000), text);
        }
    }
}
