//! The methods of [`DirectionStream`] for a reader. These methods return octets, the frames of
//! octets, and the boundaries of segments. Other methods consume octets.

use crate::frame_number::FrameNumber;
use crate::location::StreamLocation;

use super::super::run::Run;
use super::super::segment_octets::SegmentOctets;
use super::{AwaitedEvent, DirectionStream, Pending};

/// A range of positions. The octets in the range were either all captured, or are all missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSpan {
    /// First position.
    pub start: u64,
    /// Position after the last octet.
    pub end: u64,
    /// Whether the octets were captured.
    pub captured: bool,
}

impl DirectionStream {
    #[inline]
    fn run_at(&self, position: u64) -> Option<&Run> {
        let first = self.runs.front()?;
        if first.start <= position && position < first.end() {
            return Some(first);
        }
        self.runs.get(self.first_run_after(position)).filter(|run| run.start <= position)
    }

    /// Index of the first run that has octets at or after `position`.
    fn first_run_after(&self, position: u64) -> usize {
        self.runs.partition_point(|run| run.end() <= position)
    }

    /// The octets at positions `start..end`; `None` if some of these octets are not in the capture.
    ///
    /// # Errors
    /// [`Pending`] if some of the octets are not settled yet.
    #[inline]
    pub(crate) fn octets(&self, start: u64, end: u64) -> Result<Option<&[u8]>, Pending> {
        if start >= end {
            return Ok(Some(&[]));
        }
        match self.run_at(start) {
            Some(run) if end <= run.end() => Ok(Some(run.slice(start, end))),
            _ if end <= self.settled || self.finished => Ok(None),
            _ => Err(Pending { until: end, awaited: AwaitedEvent::Octets { holes: self.holes } }),
        }
    }

    /// The settled octets from position `start` up to the first gap.
    pub(crate) fn contiguous(&self, start: u64) -> &[u8] {
        self.run_at(start).map_or(&[], |run| run.slice(start, run.end()))
    }

    /// Splits the settled positions `start..end` into captured and missing ranges.
    pub(crate) fn spans(&self, start: u64, end: u64) -> impl Iterator<Item = StreamSpan> + '_ {
        let mut at = start;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let from = at;
            if let Some(run) = self.run_at(from) {
                at = end.min(run.end());
                Some(StreamSpan { start: from, end: at, captured: true })
            } else {
                at = self.runs.get(self.first_run_after(from)).map_or(end, |run| end.min(run.start));
                Some(StreamSpan { start: from, end: at, captured: false })
            }
        })
    }

    /// Number and capture time of the latest frame that supplied octets at positions `start..end`.
    /// If no frame supplied octets at these positions, the number and the time are zero.
    #[inline]
    pub(crate) fn frame_of(&self, start: u64, end: u64) -> (FrameNumber, u64) {
        if let Some(run) = self.run_at(start).filter(|run| start < end && end <= run.end()) {
            return run.latest_frame(start, end);
        }
        let runs = self.runs.range(self.first_run_after(start)..).take_while(|run| run.start < end);
        runs.map(|run| run.latest_frame(start, end)).max().unwrap_or_default()
    }

    /// Returns whether a captured octet at positions `start..end` is from a damaged segment. Such a
    /// segment has a wrong checksum, although the direction has segments with a correct checksum.
    pub(crate) fn is_damaged(&self, start: u64, end: u64) -> bool {
        let runs = self.runs.range(self.first_run_after(start)..).take_while(|run| run.start < end);
        runs.into_iter().any(|run| run.is_damaged(start, end))
    }

    /// Locations of the captured octets at positions `start..end`, in stream order.
    pub(crate) fn locate(&self, start: u64, end: u64) -> impl Iterator<Item = StreamLocation> {
        let runs = self.runs.range(self.first_run_after(start)..).take_while(move |run| run.start < end);
        runs.flat_map(move |run| run.locate(start, end))
    }

    /// Returns whether a TCP segment starts at `position`. `position` must not be consumed yet.
    pub(crate) fn segment_starts_at(&self, position: u64) -> bool {
        self.starts.binary_search(&position).is_ok()
    }

    /// Returns whether a TCP segment ends at `position`. `position` must not be consumed yet.
    pub(crate) fn segment_ends_at(&self, position: u64) -> bool {
        self.ends.binary_search(&position).is_ok()
    }

    /// The smallest position after `position` at which a TCP segment ends. `position` must not be
    /// consumed yet.
    pub(crate) fn segment_end_after(&self, position: u64) -> Option<u64> {
        self.ends.get(self.ends.partition_point(|end| *end <= position)).copied()
    }

    /// Returns whether the first octet of `arrived` is the next octet to read, and no unread octets
    /// are stored.
    pub(crate) fn continues_with(&self, arrived: &SegmentOctets<'_>) -> bool {
        arrived.position() == self.consumed && self.consumed == self.settled && self.waiting.is_empty()
    }

    /// Consumes the octets before `position` from a segment that is not stored yet. The caller has
    /// checked [`DirectionStream::continues_with`] for this segment.
    pub(crate) fn consume_unstored(&mut self, position: u64) {
        self.settled = position;
        self.consume(position);
    }

    /// Consumes the settled octets before `position`, and frees their memory.
    pub(crate) fn consume(&mut self, position: u64) {
        debug_assert!(self.consumed <= position && position <= self.settled);
        self.consumed = position;
        loop {
            let others = self.runs.len() > 1;
            let Some(run) = self.runs.front_mut() else { break };
            if run.start >= position {
                break;
            }
            let (octets, sources) = (run.len(), run.sources());
            run.consume_to(position.min(run.end()));
            self.buffered -= octets - run.len();
            self.sources -= sources - run.sources();
            if run.len() > 0 {
                break;
            }
            if !others {
                // Keep the allocation of the run for later segments.
                run.start = self.settled.max(position);
                break;
            }
            self.runs.pop_front();
        }
        if position == self.end {
            self.starts.clear();
            self.ends.clear();
            return;
        }
        while self.starts.front().is_some_and(|start| *start < position) {
            self.starts.pop_front();
        }
        while self.ends.front().is_some_and(|end| *end <= position) {
            self.ends.pop_front();
        }
    }
}
