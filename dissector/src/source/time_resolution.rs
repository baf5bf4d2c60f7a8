//! [`TimeResolution`]: the resolution of the times of frames.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::frame_number::FrameNumber;

/// Number of decimals of times in microseconds.
pub(super) const MICROSECONDS: u8 = 6;
/// Number of decimals of times in nanoseconds. Finer times are cut off to nanoseconds.
pub(super) const NANOSECONDS: u8 = 9;
/// Maximum number of runs of frames with the same resolution. If there are more, the oldest run is
/// dropped.
const MAX_RUNS: usize = 1 << 16;

/// The number of decimals that the times of the frames have, in seconds. The interfaces of a pcapng
/// capture can have different resolutions, so each frame has its own. Clones share the data.
#[derive(Debug, Clone, Default)]
pub struct TimeResolution(Arc<Mutex<VecDeque<Run>>>);

/// A run of consecutive frames with the same resolution.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: FrameNumber,
    decimals: u8,
}

impl TimeResolution {
    /// All frames have times in nanoseconds.
    #[must_use]
    pub fn nanoseconds() -> Self {
        let resolution = TimeResolution::default();
        resolution.note(FrameNumber::FIRST, NANOSECONDS);
        resolution
    }

    fn runs(&self) -> MutexGuard<'_, VecDeque<Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the number of decimals of frame `number` and the later frames. Frames must be
    /// recorded in their order.
    pub fn note(&self, number: FrameNumber, decimals: u8) {
        let mut runs = self.runs();
        if runs.back().is_none_or(|run| run.decimals != decimals) {
            if runs.len() == MAX_RUNS {
                runs.pop_front();
            }
            runs.push_back(Run { first: number, decimals });
        }
    }

    /// The number of decimals of frame `number`, from 0 to 9. If the run of the frame was dropped,
    /// returns the number of the oldest run. Without any run, returns 6.
    #[must_use]
    pub fn of(&self, number: FrameNumber) -> u8 {
        let runs = self.runs();
        let index = runs.partition_point(|run| run.first <= number).saturating_sub(1);
        runs.get(index).map_or(MICROSECONDS, |run| run.decimals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_has_its_own_number_of_decimals() {
        let resolution = TimeResolution::default();
        assert_eq!(resolution.of(FrameNumber::FIRST), 6);
        for (number, decimals) in [(1, 9), (2, 9), (3, 6), (4, 9)] {
            resolution.note(FrameNumber::from(number), decimals);
        }
        assert_eq!([0, 1, 2, 3, 4, 99].map(|number| resolution.of(FrameNumber::from(number))), [9, 9, 9, 6, 9, 9]);
        assert_eq!(resolution.runs().len(), 3);
        assert_eq!(TimeResolution::nanoseconds().of(FrameNumber::from(7)), 9);
    }

    #[test]
    fn the_number_of_runs_has_a_limit() {
        let resolution = TimeResolution::default();
        for number in 1..=MAX_RUNS as u64 + 1 {
            resolution.note(number.into(), if number == 1 { 0 } else { 3 + (number % 2) as u8 });
        }
        assert_eq!(resolution.runs().len(), MAX_RUNS);
        assert_eq!([1, 2, 3].map(|number| resolution.of(FrameNumber::from(number))), [3, 3, 4]);
    }
}
