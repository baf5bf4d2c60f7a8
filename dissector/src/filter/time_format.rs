//! The forms of times: [`TimeFormat`] has the forms of tshark's option `-t`.
//!
//! Calendar times are in UTC. weft does not know the time zone of the user.

use std::str::FromStr;

use super::frame_facts::FrameFacts;
use crate::calendar::{CalendarTime, difference, seconds};
use crate::source::TimeResolution;

/// The form of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeForm {
    /// `r`: seconds since the first frame.
    #[default]
    Relative,
    /// `a` and `u`: time of day in UTC.
    TimeOfDay,
    /// `ad` and `ud`: date and time of day in UTC.
    Date,
    /// `adoy` and `udoy`: year, day of the year and time of day in UTC.
    DayOfYear,
    /// `d`: seconds since the previous frame of the capture.
    Delta,
    /// `dd`: seconds since the previous frame that was printed.
    DeltaDisplayed,
    /// `e`: seconds since 1970.
    Epoch,
}

/// The form of a time, and its number of decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeFormat {
    /// The form.
    pub form: TimeForm,
    /// Number of decimals, at most 9. `None` is the number that the frame has in the capture, as in
    /// tshark.
    pub decimals: Option<u8>,
}

impl Default for TimeFormat {
    /// Seconds since the first frame, with 6 decimals.
    fn default() -> Self {
        TimeFormat { form: TimeForm::Relative, decimals: Some(6) }
    }
}

/// The text is not a form of `-t`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("use a, ad, adoy, d, dd, e, r, u, ud or udoy, also with a number of decimals such as ad.3 or .9")]
pub struct InvalidTimeFormat;

impl FromStr for TimeFormat {
    type Err = InvalidTimeFormat;

    /// Reads a form in tshark's spelling: `ad`, `e.9`, `.3`.
    fn from_str(text: &str) -> Result<Self, InvalidTimeFormat> {
        let (form, decimals) = match text.split_once('.') {
            Some((form, decimals)) => (form, Some(decimals)),
            None => (text, None),
        };
        let form = match form {
            "r" => TimeForm::Relative,
            // `.3` has only the number of decimals.
            "" if text.starts_with('.') => TimeForm::Relative,
            "a" | "u" => TimeForm::TimeOfDay,
            "ad" | "ud" => TimeForm::Date,
            "adoy" | "udoy" => TimeForm::DayOfYear,
            "d" => TimeForm::Delta,
            "dd" => TimeForm::DeltaDisplayed,
            "e" => TimeForm::Epoch,
            _ => return Err(InvalidTimeFormat),
        };
        let decimals = match decimals.map(str::as_bytes) {
            None => None,
            Some([digit @ b'0'..=b'9']) => Some(digit - b'0'),
            Some(_) => return Err(InvalidTimeFormat),
        };
        Ok(TimeFormat { form, decimals })
    }
}

impl TimeFormat {
    /// Formats the time of a frame. `displayed` is the time of the previous frame that was printed,
    /// in nanoseconds since 1970. The first frame has the difference 0 to its previous frame. If the
    /// format has no number of decimals, the frame has the number in `resolution`.
    #[must_use]
    pub fn of(self, facts: &FrameFacts, displayed: Option<u64>, resolution: &TimeResolution) -> String {
        let decimals = self.decimals.unwrap_or_else(|| resolution.of(facts.number));
        let (form, time) = (self.form, facts.time);
        let since = |earlier: Option<u64>| seconds(difference(time, earlier.unwrap_or(time)), decimals);
        match form {
            TimeForm::Relative => seconds(difference(time, facts.origin), decimals),
            TimeForm::TimeOfDay => format!("{}Z", CalendarTime::of(time).time_of_day(decimals)),
            TimeForm::Date => format!("{}Z", CalendarTime::of(time).date_and_time(decimals)),
            TimeForm::DayOfYear => {
                let calendar = CalendarTime::of(time);
                format!("{}/{:03} {}Z", calendar.year, calendar.day_of_year, calendar.time_of_day(decimals))
            }
            TimeForm::Delta => since(facts.previous),
            TimeForm::DeltaDisplayed => since(displayed),
            TimeForm::Epoch => seconds(time.cast_signed(), decimals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_number::FrameNumber;

    /// 2024-02-29 12:34:56.123456789 UTC. The seconds are those of `date -u -d ... +%s`.
    const LEAP_DAY: u64 = 1_709_210_096_123_456_789;

    fn shown(format: &str) -> String {
        shown_with(format, &TimeResolution::default())
    }

    fn shown_with(format: &str, resolution: &TimeResolution) -> String {
        let facts = FrameFacts {
            time: LEAP_DAY,
            origin: LEAP_DAY - 1_500_000_000,
            previous: Some(LEAP_DAY + 250_000_000),
            ..FrameFacts::default()
        };
        format.parse::<TimeFormat>().unwrap().of(&facts, Some(LEAP_DAY - 2_000_000_001), resolution)
    }

    #[test]
    fn the_capture_decides_the_number_of_decimals() {
        let nanoseconds = TimeResolution::nanoseconds();
        for (format, expected) in [
            ("r", "1.500000000"),
            ("a", "12:34:56.123456789Z"),
            ("ud", "2024-02-29 12:34:56.123456789Z"),
            ("adoy", "2024/060 12:34:56.123456789Z"),
            ("d", "-0.250000000"),
            ("dd", "2.000000001"),
            ("e", "1709210096.123456789"),
            // The user chose the number of decimals.
            ("e.6", "1709210096.123456"),
        ] {
            assert_eq!(shown_with(format, &nanoseconds), expected, "{format}");
        }
        let milliseconds = TimeResolution::default();
        milliseconds.note(FrameNumber::NONE, 3);
        assert_eq!(shown_with("ud", &milliseconds), "2024-02-29 12:34:56.123Z");
        // weft's own lines always have 6 decimals.
        let facts = FrameFacts { time: LEAP_DAY, origin: LEAP_DAY, ..FrameFacts::default() };
        assert_eq!(TimeFormat::default().of(&facts, None, &nanoseconds), "0.000000");
    }

    #[test]
    fn times_have_the_forms_of_tshark() {
        for (format, expected) in [
            ("r", "1.500000"),
            (".0", "1"),
            ("a", "12:34:56.123456Z"),
            ("u.3", "12:34:56.123Z"),
            ("ad", "2024-02-29 12:34:56.123456Z"),
            ("ud.9", "2024-02-29 12:34:56.123456789Z"),
            ("udoy", "2024/060 12:34:56.123456Z"),
            // The previous frame has a later time.
            ("d", "-0.250000"),
            ("dd.9", "2.000000001"),
            ("e.9", "1709210096.123456789"),
        ] {
            assert_eq!(shown(format), expected, "{format}");
        }
        for wrong in ["", "x", "ad.", "r.10", "r.x", "."] {
            assert!(wrong.parse::<TimeFormat>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_first_frame_has_no_difference() {
        let facts = FrameFacts { time: LEAP_DAY, ..FrameFacts::default() };
        let format = TimeFormat { form: TimeForm::DeltaDisplayed, decimals: Some(3) };
        assert_eq!(format.of(&facts, None, &TimeResolution::default()), "0.000");
    }
}
