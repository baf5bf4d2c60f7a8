//! Times for people.

use weft_suites::clock;

/// Formats milliseconds since 1970 as `2026-01-31 12:00:00 UTC`.
pub(super) fn utc(unix_ms: u64) -> String {
    let time = clock::rfc3339(unix_ms);
    let (date, time) = time.split_once('T').unwrap_or((&time, ""));
    format!("{date} {} UTC", time.split('.').next().unwrap_or_default())
}

/// Formats the time from `unix_ms` to `now_ms`, both in milliseconds since 1970, for example as `3
/// hours ago`. A time in the future is `just now`, because the clocks of two hosts may differ.
pub(super) fn ago(now_ms: u64, unix_ms: u64) -> String {
    let minutes = now_ms.saturating_sub(unix_ms) / 60_000;
    let (number, unit) = match minutes {
        0 => return "just now".to_owned(),
        1..60 => (minutes, "minute"),
        60..1440 => (minutes / 60, "hour"),
        _ => (minutes / 1440, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, text) in [
            (59, "just now"),
            (60, "1 minute ago"),
            (3599, "59 minutes ago"),
            (7199, "1 hour ago"),
            (86_399, "23 hours ago"),
            (172_800, "2 days ago"),
        ] {
            assert_eq!(ago(1_000_000_000, 1_000_000_000 - seconds * 1000), text);
        }
        assert_eq!(ago(5, 1_000_000), "just now");
    }

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
