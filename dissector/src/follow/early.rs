//! Responses that the monitor processes before their requests.
//!
//! Without CRC, the monitor parses an FPDU only when the next FPDU of the same direction has
//! arrived. By then the response may have been processed. After a gap in the capture, or with a
//! snap length, the monitor may process all of one direction before the other.

use super::message::At;
use crate::parse::SegmentView;

/// The fields of a response that identify its request: STag and TO of a Read's sink, or the Request
/// Identifier of an atomic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Sink(u32, u64),
    Identifier(u32),
}

/// A response that was processed before its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    pub(super) key: Key,
    /// Frame of the first segment of the response.
    pub(super) begun: u64,
    /// Octets of payload received so far.
    pub(super) answered: u64,
    pub(super) segments: u32,
    /// Frame and time of the last segment; `None` until that segment has been processed.
    pub(super) ended: Option<(u64, u64)>,
}

impl Early {
    pub(super) fn new(at: At, view: &SegmentView<'_>, key: Key) -> Self {
        let mut early = Early { key, begun: at.frame, answered: 0, segments: 0, ended: None };
        early.add(at, view);
        early
    }

    pub(super) fn add(&mut self, at: At, view: &SegmentView<'_>) {
        self.answered += u64::from(view.payload_len);
        self.segments = self.segments.saturating_add(1);
        self.ended = view.last().then_some((at.frame, at.time));
    }
}
