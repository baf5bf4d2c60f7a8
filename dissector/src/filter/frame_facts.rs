//! [`FrameFacts`]: the facts about a frame from which its fields and columns are made.

use crate::frame_number::FrameNumber;
use crate::packet::Packet;

/// Facts about a frame itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameFacts {
    /// Number of the frame.
    pub number: FrameNumber,
    /// Capture time in nanoseconds since 1970.
    pub time: u64,
    /// Capture time of the first frame of the capture, in nanoseconds since 1970.
    pub origin: u64,
    /// Capture time of the previous frame, in nanoseconds since 1970; `None` for the first frame,
    /// or if it is unknown.
    pub previous: Option<u64>,
    /// Length on the wire and captured length, in octets; `None` if unknown.
    pub len: Option<(u32, u32)>,
    /// The TCP or UDP packet in the frame.
    pub packet: Option<Packet>,
}
