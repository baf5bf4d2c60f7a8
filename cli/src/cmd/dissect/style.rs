//! The form of times and addresses in lines of text: the options -t and -N.

use weft_dissector::FrameNumber;
use weft_dissector::filter::{FrameFacts, TimeForm, TimeFormat};
use weft_dissector::source::{Names, TimeResolution};

/// For -t d, weft stores the times before this number of newest frames.
const REMEMBERED: usize = 4096;

/// The form of times and addresses.
#[derive(Clone, Default)]
pub(super) struct LineStyle {
    pub(super) time: TimeFormat,
    /// The names that replace addresses.
    pub(super) names: Option<Names>,
    /// The resolution of the times of the frames.
    pub(super) resolution: TimeResolution,
}

impl LineStyle {
    /// Formats the time of a frame. `displayed` is the time of the previous frame that was printed.
    pub(super) fn time(&self, facts: &FrameFacts, displayed: Option<u64>) -> String {
        self.time.of(facts, displayed, &self.resolution)
    }
}

/// The times in the lines of units.
#[derive(Default)]
pub(super) struct UnitTimes {
    pub(super) style: LineStyle,
    /// Time of the latest frame.
    latest: Option<u64>,
    /// The newest frames, each with the time of its previous frame. The index is the frame number
    /// modulo [`REMEMBERED`].
    previous: Vec<(FrameNumber, Option<u64>)>,
}

impl UnitTimes {
    pub(super) fn new(style: LineStyle) -> Self {
        UnitTimes { style, ..UnitTimes::default() }
    }

    /// Returns whether the lines have their usual form.
    pub(super) fn is_default(&self) -> bool {
        self.style.names.is_none() && self.style.time == TimeFormat::default()
    }

    /// Starts a frame.
    pub(super) fn begin(&mut self, number: FrameNumber, time: u64) {
        if self.style.time.form != TimeForm::Delta {
            return;
        }
        let (at, before) = (index(number), self.latest.replace(time));
        if self.previous.len() <= at {
            self.previous.resize(at + 1, (FrameNumber::NONE, None));
        }
        self.previous[at] = (number, before);
    }

    /// Formats the time of frame `number`. If the time depends on the previous frame, and this
    /// frame is no longer known, returns `?`.
    pub(super) fn of(&self, number: FrameNumber, time: u64, origin: u64) -> String {
        let stored = self.previous.get(index(number)).filter(|(stored, _)| *stored == number);
        if self.style.time.form == TimeForm::Delta && stored.is_none() {
            return "?".to_owned();
        }
        let previous = stored.and_then(|(_, before)| *before);
        self.style.time(&FrameFacts { number, time, origin, previous, ..FrameFacts::default() }, None)
    }
}

fn index(number: FrameNumber) -> usize {
    (u64::from(number) % REMEMBERED as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_previous_frame_of_the_newest_frames() {
        let style = LineStyle { time: "d.1".parse().unwrap(), ..LineStyle::default() };
        let mut times = UnitTimes::new(style.clone());
        for number in 1..=REMEMBERED as u64 + 2 {
            times.begin(number.into(), number * 1_000_000_000);
        }
        let shown = |number: u64| times.of(number.into(), number * 1_000_000_000, 0);
        assert_eq!([shown(3), shown(4098), shown(2)], ["1.0", "1.0", "?"]);
        let mut first = UnitTimes::new(style);
        first.begin(FrameNumber::FIRST, 5);
        assert_eq!(first.of(FrameNumber::FIRST, 5, 5), "0.0");
    }
}
