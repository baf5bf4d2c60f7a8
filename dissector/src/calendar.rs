//! Calendar times in UTC, and seconds with decimals.

use std::fmt;

const NS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The difference of two times in nanoseconds. It is negative if `time` is before `earlier`.
pub(crate) fn difference(time: u64, earlier: u64) -> i64 {
    time.wrapping_sub(earlier).cast_signed()
}

/// Formats nanoseconds as seconds with this number of decimals. Further decimals are cut off.
pub(crate) fn seconds(nanoseconds: i64, decimals: u8) -> String {
    let (sign, absolute) = (if nanoseconds < 0 { "-" } else { "" }, nanoseconds.unsigned_abs());
    format!("{sign}{}{}", absolute / NS_PER_SECOND, Fraction(absolute, decimals))
}

/// The fraction of a time in nanoseconds, with this number of decimals.
struct Fraction(u64, u8);

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fraction(nanoseconds, decimals) = *self;
        let decimals = decimals.min(9);
        if decimals == 0 {
            return Ok(());
        }
        let fraction = nanoseconds % NS_PER_SECOND / 10_u64.pow(u32::from(9 - decimals));
        write!(f, ".{fraction:0width$}", width = usize::from(decimals))
    }
}

/// A time in the Gregorian calendar, in UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CalendarTime {
    pub(crate) year: u64,
    /// 1 to 12.
    month: u64,
    /// 1 to 31.
    day: u64,
    /// 1 to 366.
    pub(crate) day_of_year: u64,
    seconds_of_day: u64,
    nanoseconds: u64,
}

impl CalendarTime {
    /// The calendar time of a time in nanoseconds since 1970.
    pub(crate) fn of(time: u64) -> Self {
        let seconds = time / NS_PER_SECOND;
        let days = seconds / SECONDS_PER_DAY;
        // The calculation uses eras of 400 years that begin on 1 March.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        // 1 March is day 60, or day 61 of a leap year. 1 January is 306 days after 1 March.
        let day_of_year = if month > 2 { of_year + 60 + u64::from(is_leap) } else { of_year - 305 };
        let (seconds_of_day, nanoseconds) = (seconds % SECONDS_PER_DAY, time % NS_PER_SECOND);
        CalendarTime { year, month, day, day_of_year, seconds_of_day, nanoseconds }
    }

    /// `12:34:56.123456`
    pub(crate) fn time_of_day(&self, decimals: u8) -> String {
        let seconds = self.seconds_of_day;
        let fraction = Fraction(self.nanoseconds, decimals);
        format!("{:02}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// `2026-01-31`
    pub(crate) fn date(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// `2026-01-31 12:34:56.123456`
    pub(crate) fn date_and_time(&self, decimals: u8) -> String {
        format!("{} {}", self.date(), self.time_of_day(decimals))
    }

    /// `Jan 31, 2026 12:34:56.123456789 UTC`, as in tshark's field `frame.time`.
    pub(crate) fn in_words(&self) -> String {
        let month = usize::try_from(self.month).ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
        let month = month.copied().unwrap_or_default();
        format!("{month} {:2}, {} {} UTC", self.day, self.year, self.time_of_day(9))
    }
}

/// Reads a calendar time in UTC: `2026-01-31`, `2026-01-31 12:34:56.5`, `2026-01-31T12:34:56Z` or
/// `Jan 31, 2026 12:34:56`. Returns nanoseconds since 1970; `None` if the text has another form, or
/// if the time is before 1970 or after 2500.
pub(crate) fn parse_calendar_time(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix('Z').or_else(|| text.strip_suffix(" UTC")).unwrap_or(text);
    let (date, time) = if text.starts_with(|first: char| first.is_ascii_digit()) {
        let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "0:0:0"));
        let [year, month, day] = numbers(date, '-')?;
        ((year, month, day), time)
    } else {
        let (date, rest) = text.split_once(',')?;
        let (name, day) = date.split_once(' ')?;
        let month = (1..).zip(MONTHS).find(|(_, known)| *known == name)?.0;
        let rest = rest.trim_start();
        let (year, time) = rest.split_once(' ').unwrap_or((rest, "0:0:0"));
        ((number(year)?, month, number(day.trim_start())?), time)
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_valid = (1970..=2500).contains(&date.0)
        && (1..=12).contains(&date.1)
        && (1..=31).contains(&date.2)
        && (hour, minute, second) <= (23, 59, 60)
        && minute <= 59
        && second <= 60
        && fraction.len() <= 9;
    if !is_valid {
        return None;
    }
    let fraction = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<9}"))? };
    let days = days_since_1970(date.0.cast_signed(), date.1.cast_signed(), date.2.cast_signed());
    let seconds = u64::try_from(days).ok()? * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    Some(seconds * NS_PER_SECOND + fraction)
}

/// Number of days from 1970-01-01 to a date of the Gregorian calendar. In this calculation, years
/// start in March. A leap day is therefore the last day of a year.
pub(crate) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5 + day
        - 719_469
}

/// A decimal number of at most nine digits.
fn number(text: &str) -> Option<u64> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Three numbers with `separator` between them.
fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(number);
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_days_of_the_calendar() {
        for (date, days) in [((1970, 1, 1), 0), ((1969, 12, 31), -1), ((2000, 2, 29), 11_016), ((2026, 11, 24), 20_781)]
        {
            assert_eq!(days_since_1970(date.0, date.1, date.2), days, "{date:?}");
        }
    }

    /// The days of the year are those of `date -u -d ... +%j`.
    #[test]
    fn days_are_those_of_the_calendar() {
        for (text, day_of_year, words) in [
            ("1970-01-01", 1, "Jan  1, 1970 00:00:00.000000000 UTC"),
            ("2000-02-29T00:00:00Z", 60, "Feb 29, 2000 00:00:00.000000000 UTC"),
            ("2000-03-01 00:00:00", 61, "Mar  1, 2000 00:00:00.000000000 UTC"),
            ("2023-12-31 23:59:59.5", 365, "Dec 31, 2023 23:59:59.500000000 UTC"),
            ("2024-12-31 23:59:59.000000001", 366, "Dec 31, 2024 23:59:59.000000001 UTC"),
            ("2100-03-01 00:00:00", 60, "Mar  1, 2100 00:00:00.000000000 UTC"),
        ] {
            let time = parse_calendar_time(text).unwrap();
            let calendar = CalendarTime::of(time);
            assert_eq!((calendar.day_of_year, calendar.in_words().as_str()), (day_of_year, words), "{text}");
            assert_eq!(parse_calendar_time(words), Some(time), "{words}");
        }
        // The seconds are those of `date -u -d ... +%s`.
        let time = parse_calendar_time("2024-02-29 12:34:56.123456789");
        assert_eq!(time, Some(1_709_210_096_123_456_789));
        for wrong in ["", "2024", "2024-13-01", "1969-12-31", "2024-01-01 25:00:00", "Foo 1, 2024", "2024-01-01 1:2"] {
            assert_eq!(parse_calendar_time(wrong), None, "{wrong}");
        }
    }
}
