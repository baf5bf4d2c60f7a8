//! The FIN of a direction.

/// The FIN of a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    /// Sequence number of the FIN itself, after the octets of its segment.
    pub(super) seq: u32,
    pub(super) frame: u64,
    /// Capture time in nanoseconds since 1970.
    pub(super) time: u64,
    /// Whether the octets directly before the FIN are missing, because no segment with them was
    /// captured.
    pub(super) has_hole: bool,
}
