//! One entry of a schedule: which run starts, and when.

use serde::Deserialize;
use weft_suites::model::{Labels, Tier, parse_label};

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 1440 * MINUTE_MS;
/// Maximum number of days between two runs.
const MAX_DAYS: u64 = 366;

/// An entry as it is in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    target: String,
    every: Option<String>,
    at: Option<String>,
    #[serde(default)]
    tier: Tier,
    #[serde(default)]
    select: Vec<String>,
    #[serde(default)]
    labels: Labels,
}

/// A run that starts again and again. Its times are `offset_ms` plus multiples of `period_ms`, in
/// milliseconds since 1970-01-01 UTC. So they do not depend on the start or the end of any run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) target: String,
    pub(super) tier: Tier,
    pub(super) select: Vec<String>,
    pub(super) labels: Labels,
    period_ms: u64,
    offset_ms: u64,
}

impl Entry {
    /// Returns the first time of this entry after `now_ms`.
    pub(super) fn next_ms(&self, now_ms: u64) -> u64 {
        let periods = match now_ms.checked_sub(self.offset_ms) {
            Some(since) => since / self.period_ms + 1,
            None => 0,
        };
        self.offset_ms.saturating_add(periods.saturating_mul(self.period_ms))
    }
}

impl TryFrom<Fields> for Entry {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let Fields { target, every, at, tier, select, labels } = fields;
        let wrong = |why: String| format!("target {target:?}: {why}");
        let (period_ms, offset_ms) = match (every.as_deref(), at.as_deref()) {
            (Some(every), None) => (interval_ms(every).map_err(wrong)?, 0),
            (None, Some(at)) => (DAY_MS, time_ms(at).map_err(wrong)?),
            _ => return Err(wrong("expected either `every` or `at`".to_owned())),
        };
        let labels = labels.iter().map(|(name, value)| parse_label(&format!("{name}={value}")));
        let labels = labels.collect::<Result<Labels, String>>().map_err(wrong)?;
        Ok(Entry { tier, select, labels, period_ms, offset_ms, target })
    }
}

/// Parses an interval, such as `30m`, `6h` or `7d`, into milliseconds.
fn interval_ms(text: &str) -> Result<u64, String> {
    let minutes = match text.as_bytes().last() {
        Some(b'm') => 1,
        Some(b'h') => 60,
        Some(b'd') => 1440,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1)).and_then(|number| number.parse::<u64>().ok());
    let interval = number.and_then(|number| number.checked_mul(minutes * MINUTE_MS));
    let allowed = MINUTE_MS..=MAX_DAYS * DAY_MS;
    interval
        .filter(|interval| allowed.contains(interval))
        .ok_or_else(|| format!("every = {text:?}: expected a number and m, h or d, such as 6h; at most {MAX_DAYS}d"))
}

/// Parses a time of day, such as `02:30`, into milliseconds since midnight.
fn time_ms(text: &str) -> Result<u64, String> {
    let is_number = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str, end: u64| text.parse::<u64>().ok().filter(|number| is_number(text) && *number < end);
    let minutes = text.split_once(':').and_then(|(hour, minute)| Some(number(hour, 24)? * 60 + number(minute, 60)?));
    let minutes = minutes.ok_or_else(|| format!("at = {text:?}: expected a time of day in UTC, such as 02:30"))?;
    Ok(minutes * MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_times_of_day_have_limits() {
        assert_eq!(
            (interval_ms("1m"), interval_ms("6h"), interval_ms("366d")),
            (Ok(60_000), Ok(21_600_000), Ok(366 * DAY_MS))
        );
        for wrong in ["", "m", "0m", "6", "6s", "-1h", "367d", "99999999999999999d", "6 h", "6é"] {
            assert!(interval_ms(wrong).is_err(), "{wrong}");
        }
        assert_eq!((time_ms("00:00"), time_ms("23:59")), (Ok(0), Ok(DAY_MS - MINUTE_MS)));
        for wrong in ["", "2:30", "24:00", "02:60", "02:30:00", "02", "+2:30", "0é:00"] {
            assert!(time_ms(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_next_time_is_later_and_never_drifts() {
        let entry = |period_ms, offset_ms| Entry {
            target: "nic".into(),
            tier: Tier::default(),
            select: Vec::new(),
            labels: Labels::new(),
            period_ms,
            offset_ms,
        };
        let hourly = entry(3_600_000, 0);
        assert_eq!(
            [0, 1, 3_599_999, 3_600_000].map(|now| hourly.next_ms(now)),
            [3_600_000, 3_600_000, 3_600_000, 7_200_000]
        );
        let daily = entry(DAY_MS, 9_000_000);
        assert_eq!(
            [0, 9_000_000, DAY_MS].map(|now| daily.next_ms(now)),
            [9_000_000, DAY_MS + 9_000_000, DAY_MS + 9_000_000]
        );
        assert_eq!(daily.next_ms(u64::MAX), u64::MAX, "no overflow");
    }
}
