//! Locations of octets in the capture.

use std::ops::Range;

/// Location of contiguous octets in one frame of the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Located {
    /// Number of the frame.
    pub frame: u64,
    /// Offset in the octets of the frame; `None` if the octets were reassembled from IP fragments,
    /// of which the frame contains only the last.
    pub offset: Option<u32>,
    /// Number of octets.
    pub len: u64,
}

impl Located {
    /// Location of the octets `range` of the located octets. `range` is cut to the existing octets.
    pub(crate) fn part(self, range: Range<u64>) -> Self {
        let (start, end) = (range.start.min(self.len), range.end.min(self.len));
        let offset = self.offset.map(|at| at.saturating_add(u32::try_from(start).unwrap_or(u32::MAX)));
        Located { offset, len: end.saturating_sub(start), ..self }
    }
}

/// Position and location of contiguous octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Position of the first octet in the stream, or its offset in a unit.
    pub at: u64,
    /// Location of the octets in the capture.
    pub located: Located,
}
