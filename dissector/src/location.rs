//! Locations of octets in the capture.

use crate::frame_number::FrameNumber;
use std::ops::Range;

/// Location of contiguous octets in one frame of the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Location {
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Offset in the octets of the frame; `None` if the octets were reassembled from IP fragments.
    /// The frame then contains only the last fragment.
    pub offset: Option<u32>,
    /// Number of octets.
    pub len: u64,
}

impl Location {
    /// Location of those octets that are in `range`. The first octet of this location has number 0.
    /// A `range` beyond the last octet is cut.
    pub(crate) fn part(self, range: Range<u64>) -> Self {
        let (start, end) = (range.start.min(self.len), range.end.min(self.len));
        let offset = self.offset.map(|at| at.saturating_add(u32::try_from(start).unwrap_or(u32::MAX)));
        Location { offset, len: end.saturating_sub(start), ..self }
    }
}

/// Position and location of contiguous octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamLocation {
    /// Position of the first octet in the stream. In locations that belong to a unit, it is the
    /// offset of the first octet in the unit.
    pub at: u64,
    /// Location of the octets in the capture.
    pub location: Location,
}
