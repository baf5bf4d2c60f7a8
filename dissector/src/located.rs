//! Where octets are in the capture.

use std::ops::Range;

/// Location of octets of the stream in the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Located {
    /// The frame.
    pub frame: u64,
    /// Offset in the frame's octets; `None` if the frame was only the last fragment of a packet.
    pub offset: Option<u32>,
    /// Number of octets.
    pub len: u64,
}

impl Located {
    /// The octets `range` of these, as far as they exist.
    pub(crate) fn part(self, range: Range<u64>) -> Self {
        let (start, end) = (range.start.min(self.len), range.end.min(self.len));
        let offset = self.offset.map(|at| at.saturating_add(u32::try_from(start).unwrap_or(u32::MAX)));
        Located { offset, len: end.saturating_sub(start), ..self }
    }
}

/// Octets that are in one piece in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Position of the first octet, in the stream or in a unit.
    pub at: u64,
    /// Their location.
    pub located: Located,
}
