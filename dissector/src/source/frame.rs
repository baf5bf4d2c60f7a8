//! A captured frame.

use crate::frame_number::FrameNumber;

/// One captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Number of the frame in the capture. The first frame has number 1.
    pub number: FrameNumber,
    /// Capture time in nanoseconds since 1970-01-01 UTC; 0 if the capture has no time.
    pub time: u64,
    /// Number of the interface in the capture; 0 for a capture of a single interface.
    pub interface: u32,
    /// Link type ([`link_type`](crate::link_type)). For media types that have no link type, weft
    /// uses its own numbers, from 0x8000 on.
    pub link_type: u16,
    /// The captured octets.
    pub octets: &'a [u8],
    /// Length of the frame on the wire in octets, at least `octets.len()`.
    pub wire_len: u32,
}
