//! The location of a DDP segment in the capture, and remarks on octets at this location.
//!
//! A location has only positions and times. It keeps no octets of the segment.

use std::ops::Range;

use super::remark::{Remark, RemarkKind};
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::Location;

/// Where and when a segment was captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentLocation {
    /// The direction of the segment.
    pub direction: Direction,
    /// Frame number.
    pub frame: FrameNumber,
    /// When the frame was captured, in nanoseconds since 1970.
    pub time: u64,
    /// Location of the segment's DDP header. If the header is in several pieces, this is the
    /// location of the first piece.
    pub header: Location,
}

impl SegmentLocation {
    /// Creates a remark on octets `range` of the current unit.
    pub(crate) fn remark(self, kind: RemarkKind, range: Range<usize>) -> Remark {
        Remark { kind, direction: self.direction, range, octets: self.header }
    }

    /// Creates a remark on octets of an earlier unit.
    pub(crate) fn earlier(self, kind: RemarkKind, octets: Location) -> Remark {
        Remark { kind, direction: self.direction, range: 0..0, octets }
    }

    /// Returns the location of DDP's control octet.
    pub(super) fn control(self) -> Location {
        self.header.part(0..1)
    }
}
