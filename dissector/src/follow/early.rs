//! Responses that the monitor reads before their requests.
//!
//! Without CRC, an FPDU is read only when the next FPDU of its direction is there. By then the
//! answer may have been read. After a hole, or with a snap length, one direction may come
//! completely after the other.

use super::message::At;
use crate::parse::SegmentView;

/// What a response names of its request: the sink of a Read, or the identifier of an atomic
/// operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Sink(u32, u64),
    Identifier(u32),
}

/// A response that was read before its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    pub(super) key: Key,
    /// Frame of its first octets.
    pub(super) begun: u64,
    /// Octets of it so far.
    pub(super) answered: u64,
    pub(super) segments: u32,
    /// Frame and time of its last octets.
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
