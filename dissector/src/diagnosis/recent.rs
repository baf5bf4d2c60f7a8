//! The last segments before the end of a connection. They show whether an endpoint ended the
//! connection directly after a certain frame.
//!
//! **Memory.** At most [`MAX_SEGMENTS`] segments are kept. After the first FIN or RST, no further
//! segments are recorded.

use std::collections::VecDeque;

use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::packet::TcpSegment;

/// Maximum number of segments that are kept.
const MAX_SEGMENTS: usize = 48;
/// An end is direct if the peer sent at most this number of segments with payload before it.
const MAX_IN_FLIGHT: usize = 8;
/// An end is direct if it came within this time, in nanoseconds.
const MAX_TIME: u64 = 5_000_000_000;

/// A pause has at least this length, in nanoseconds.
const MIN_PAUSE: u64 = 30_000_000_000;
/// An answer of TCP comes within this time, in nanoseconds.
const MAX_ANSWER_TIME: u64 = 1_000_000_000;

/// A segment.
#[derive(Debug, Clone, Copy)]
struct RecentSegment {
    frame: FrameNumber,
    time: u64,
    direction: Direction,
    has_payload: bool,
}

/// The last segments before the end of a connection.
#[derive(Debug, Default)]
pub(super) struct Recent {
    segments: VecDeque<RecentSegment>,
    is_closed: bool,
}

impl Recent {
    /// Records a segment.
    pub(super) fn record(&mut self, direction: Direction, segment: &TcpSegment<'_>) {
        if self.is_closed {
            return;
        }
        if self.segments.len() >= MAX_SEGMENTS {
            self.segments.pop_front();
        }
        let (frame, time, has_payload) = (segment.frame(), segment.time(), segment.payload_len() > 0);
        self.segments.push_back(RecentSegment { frame, time, direction, has_payload });
        self.is_closed = segment.fin() || segment.rst();
    }

    /// The latest segment in `direction` before frame `before`.
    pub(super) fn last_before(&self, direction: Direction, before: FrameNumber) -> Option<FrameNumber> {
        let mut all = self.segments.iter().rev().filter(|it| it.frame < before && it.direction == direction);
        all.next().map(|segment| segment.frame)
    }

    /// If the segment in frame `frame` answers a segment of the peer after a long pause, returns
    /// the frame of the peer's segment, and the pause in nanoseconds. `direction` is the direction
    /// of the answer.
    pub(super) fn answered_after_pause(&self, direction: Direction, frame: FrameNumber) -> Option<(FrameNumber, u64)> {
        let at = self.segments.iter().position(|segment| segment.frame == frame)?;
        let [earlier, request, answer] = [at.checked_sub(2)?, at - 1, at].map(|at| self.segments[at]);
        let is_answer = request.direction != direction && answer.time.saturating_sub(request.time) <= MAX_ANSWER_TIME;
        let pause = request.time.saturating_sub(earlier.time);
        (is_answer && pause >= MIN_PAUSE).then_some((request.frame, pause))
    }

    /// Returns whether the endpoint that sends in `direction` ended the connection in frame `end`
    /// directly after frame `after`: in between, this endpoint sent no payload, and the peer sent
    /// only a few segments. Returns `false` if this is not known.
    pub(super) fn ends_directly(&self, direction: Direction, after: FrameNumber, end: FrameNumber) -> bool {
        let Some(at) = self.segments.iter().position(|segment| segment.frame == after) else { return false };
        let Some(last) = self.segments.iter().position(|segment| segment.frame == end) else { return false };
        if last <= at {
            return false;
        }
        let between = || self.segments.range(at + 1..last).filter(|segment| segment.has_payload);
        let own = between().filter(|segment| segment.direction == direction).count();
        let peer = between().filter(|segment| segment.direction != direction).count();
        let time = self.segments[last].time.saturating_sub(self.segments[at].time);
        own == 0 && peer <= MAX_IN_FLIGHT && time <= MAX_TIME
    }
}
