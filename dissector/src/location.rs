//! Locations of octets in the capture.

use crate::frame_number::FrameNumber;
use std::ops::Range;

/// Location of contiguous octets in one frame of the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Location {
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Offset in the octets of the frame; `None` if the octets were reassembled from IP fragments.
    /// In this case, the frame contains only the last fragment.
    pub offset: Option<u32>,
    /// Number of octets.
    pub len: u64,
}

impl Location {
    /// The part of this location that is in `range`. Offset 0 in `range` is the first octet of this
    /// location. If `range` ends after the last octet of this location, the part ends at this last
    /// octet.
    pub(crate) fn part(self, range: Range<u64>) -> Self {
        let (start, end) = (range.start.min(self.len), range.end.min(self.len));
        let offset = self.offset.map(|at| at.saturating_add(u32::try_from(start).unwrap_or(u32::MAX)));
        Location { offset, len: end.saturating_sub(start), ..self }
    }
}

/// Position and location of contiguous octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamLocation {
    /// Stream position of the first of these octets. If the location belongs to a unit, `at` is
    /// instead the offset of this octet in the unit.
    pub at: u64,
    /// Location of the octets in the capture.
    pub location: Location,
}
