//! Responses that the monitor processes before their requests.
//!
//! If CRC is not in use, the monitor parses an FPDU only when the next FPDU of the same direction
//! has arrived. So the monitor sometimes processes the response to a request before it parses the
//! request. After a gap in the capture, or if a snap length cut off octets, the monitor sometimes
//! even processes one direction completely before the opposite direction.

use super::segment_location::SegmentLocation;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;

/// The fields of a response that identify its request. For a Read, the fields are STag and TO of
/// the sink. For an atomic operation, the field is the Request Identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseKey {
    Sink(u32, u64),
    Identifier(u32),
}

/// A response that was processed before its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct EarlyResponse {
    pub(super) key: ResponseKey,
    /// Frame of the first segment of the response.
    pub(super) first_frame: FrameNumber,
    /// Octets of payload received so far.
    pub(super) answered: u64,
    pub(super) segments: u32,
    /// Frame and time of the last segment; `None` until that segment has been processed.
    pub(super) last_segment: Option<(FrameNumber, u64)>,
}

impl EarlyResponse {
    pub(super) fn new(at: SegmentLocation, view: &SegmentView<'_>, key: ResponseKey) -> Self {
        let mut early = EarlyResponse { key, first_frame: at.frame, answered: 0, segments: 0, last_segment: None };
        early.add(at, view);
        early
    }

    pub(super) fn add(&mut self, at: SegmentLocation, view: &SegmentView<'_>) {
        self.answered += u64::from(view.payload_len);
        self.segments = self.segments.saturating_add(1);
        self.last_segment = view.last().then_some((at.frame, at.time));
    }
}
