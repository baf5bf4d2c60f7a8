//! The frames from one side that wait in the bridge, and their counts.
//!
//! A lane orders frames by the time at which they are due, and limits the number of waiting bytes.
//! The bridge decides when a frame is due, and which faults it has.

use std::collections::VecDeque;

use crate::fault::Fault;

/// Maximum number of bytes that wait in one direction. Further frames are lost.
const MAX_WAITING: usize = 64 << 20;

/// A fault that a released frame contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultInFrame {
    /// Number of the fault.
    pub number: u32,
    /// Offset in the frame of the byte that the fault changed.
    pub offset: Option<usize>,
}

/// Counts of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct FrameCounts {
    /// Frames from this side.
    pub frames: u64,
    /// Frames with a TCP segment.
    pub tcp: u64,
    /// TCP segments with a wrong checksum. They are forwarded without an impairment.
    pub bad_checksums: u64,
    /// Frames longer than the link allows. The host's offload made them from several segments, and
    /// the bridge divided them again.
    pub oversized: u64,
    /// Frames that were lost because too many bytes waited in the bridge.
    pub overflow: u64,
}

/// A frame on its way through the bridge.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) due: u64,
    pub(super) octets: Vec<u8>,
    pub(super) faults: Vec<FaultInFrame>,
}

/// A frame that is held back until later frames have been forwarded.
#[derive(Debug)]
pub(super) struct HeldBack {
    pub(super) frame: Waiting,
    pub(super) fault: Fault,
    /// Number of later frames of the connection that still have to pass.
    pub(super) passes: u32,
    pub(super) has_been_passed: bool,
}

/// The frames from one side.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<Waiting>,
    pub(super) waiting: usize,
    last_due: u64,
    pub(super) held_back: Option<HeldBack>,
    pub(super) counts: FrameCounts,
}

impl Lane {
    /// Inserts a frame. A delayed frame is never due before an earlier delayed frame.
    pub(super) fn push(&mut self, mut frame: Waiting, is_delayed: bool) {
        if self.waiting + frame.octets.len() > MAX_WAITING {
            self.counts.overflow += 1;
            return;
        }
        if is_delayed {
            frame.due = frame.due.max(self.last_due);
            self.last_due = frame.due;
        }
        self.waiting += frame.octets.len();
        // A frame without a delay overtakes delayed frames of other connections.
        let at = self.queue.partition_point(|earlier| earlier.due <= frame.due);
        self.queue.insert(at, frame);
    }
}
