//! The FIN that ends a direction.

/// The FIN that ends a direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    /// Its own sequence number, after the octets of its segment.
    pub(super) seq: u32,
    pub(super) frame: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub(super) time: u64,
    /// Are octets in front of it missing of which no segment was captured?
    pub(super) has_hole: bool,
}
