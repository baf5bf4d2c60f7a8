//! The number of a frame in a capture.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::Serialize;

/// The number of a frame in a capture. The first frame has number 1, as in tshark's `frame.number`.
/// If a capture has several files, the numbers continue from file to file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct FrameNumber(u64);

impl FrameNumber {
    /// The first frame of a capture.
    pub const FIRST: FrameNumber = FrameNumber(1);

    /// No frame. For example, missing bytes at the end of a direction are in no frame.
    pub const NONE: FrameNumber = FrameNumber(0);

    /// The largest number. No capture has this many frames.
    pub const MAX: FrameNumber = FrameNumber(u64::MAX);

    /// The number of the frame that is `count` frames later.
    #[must_use]
    #[inline]
    pub fn later(self, count: u64) -> Self {
        FrameNumber(self.0.saturating_add(count))
    }

    /// How many frames this frame is after `earlier`; `None` if it is before `earlier`.
    #[must_use]
    #[inline]
    pub fn frames_since(self, earlier: FrameNumber) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// How many frames this frame is before or after `other`.
    #[must_use]
    #[inline]
    pub fn distance(self, other: FrameNumber) -> u64 {
        self.0.abs_diff(other.0)
    }
}

impl From<u64> for FrameNumber {
    #[inline]
    fn from(number: u64) -> Self {
        FrameNumber(number)
    }
}

impl From<FrameNumber> for u64 {
    #[inline]
    fn from(frame: FrameNumber) -> u64 {
        frame.0
    }
}

impl FromStr for FrameNumber {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(FrameNumber)
    }
}

impl fmt::Display for FrameNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_serializes_as_its_number() {
        let frame = FrameNumber(42);
        assert_eq!((format!("{frame:>6}"), format!("{frame:<4}|")), ("    42".to_owned(), "42  |".to_owned()));
        assert_eq!(serde_json::json!({ "frame": frame }).to_string(), r#"{"frame":42}"#);
    }

    #[test]
    fn counts_the_frames_between_two_frames() {
        let [three, seven] = [FrameNumber(3), FrameNumber(7)];
        assert_eq!((seven.frames_since(three), three.frames_since(seven)), (Some(4), None));
        assert_eq!((three.distance(seven), seven.distance(three)), (4, 4));
        assert_eq!((three.later(4), FrameNumber::MAX.later(1)), (seven, FrameNumber::MAX));
    }
}
