//! The FIN of a direction.

use crate::frame_number::FrameNumber;

/// The FIN of a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct FinSegment {
    /// Sequence number of the FIN itself. The FIN comes after the octets of its segment.
    pub(super) seq: u32,
    pub(super) frame: FrameNumber,
    /// Capture time in nanoseconds since 1970.
    pub(super) time: u64,
    /// Whether the octets directly before the FIN are missing, because no segment with these octets
    /// was captured.
    pub(super) has_hole: bool,
}
