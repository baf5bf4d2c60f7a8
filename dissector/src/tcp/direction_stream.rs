//! [`DirectionStream`] stores the unread octets of one direction of a TCP connection.
//!
//! ```text
//!            consumed                    settled                   end
//!               v                           v                       v
//!   ...........|===============|      |=====|      |=========|      |
//!     read      captured         gap   captured     waiting   snap-length cut
//! ```
//!
//! Every octet has a **position**. The first octet after the SYN has the position [`ORIGIN`]. If
//! the SYN was not captured, the first octet of the first captured segment has this position. In
//! this case, octets at lower positions may arrive until [`DirectionStream::begin`]. A **gap** is a
//! range of octets that were not captured. The stream waits for these octets. If it stops waiting,
//! it **gives up** the gap, and the octets are missing. If an octet is captured twice, the first
//! capture counts, with two exceptions:
//!
//! - A segment of one octet can be a keep-alive. The octet of a keep-alive can have any value (RFC
//!   1122 section 4.2.3.6). If the octet follows a gap, an octet of a longer segment replaces it.
//!   If the stream gives up the gap, weft treats the octet as missing.
//! - A segment with a wrong checksum was damaged in transit, and the receiver drops it. If another
//!   segment of the direction has a correct checksum, the octets of the damaged segment are
//!   **doubted**. Doubted octets wait, even if there is no gap, and octets of another segment
//!   replace them. Doubted octets become part of the stream if the receiver acknowledges them, or
//!   if no other segment replaces them. If the CRC of an FPDU later shows that these octets are
//!   wrong, the receiver received other octets that were not captured.
//!
//! Octets before the position `settled` cannot change any more; they are **settled**. Octets after
//! this position wait for the octets of a gap. The stream gives up a gap when more than
//! [`MAX_WAITING_OCTETS`] octets wait after the gap, or at the end of the capture. A query about
//! settled octets returns a result. A query about octets that may still arrive returns [`Pending`],
//! with the event for which the caller must wait.
//!
//! **Memory.** Waiting octets use at most [`MAX_WAITING_OCTETS`]. Each waiting segment counts as
//! its octets plus [`SEGMENT_WEIGHT`]. Settled octets stay until the reader consumes them. The
//! reader checks several consecutive FPDUs together, and leaves at most the octets of these FPDUs.

mod closing;
mod fin;
mod reading;
mod waiting;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use crate::ip::Segment;

use super::checksum::Checksum;
use super::run::{Run, Source};
use super::segment_octets::SegmentOctets;

/// Position of the first octet after a SYN. The position is far from 0, because octets before the
/// first captured octet also need positions. It is a multiple of the marker interval 512. Therefore
/// a position and its distance from the first octet are equal modulo 512.
pub(crate) const ORIGIN: u64 = 1 << 40;

/// Maximum number of waiting octets in a direction. If more octets wait, the stream gives up the
/// gap before them.
pub(crate) const MAX_WAITING_OCTETS: usize = 1 << 20;

/// Each waiting segment counts as its octets plus this number, because a stored segment needs
/// memory in addition to its octets.
const SEGMENT_WEIGHT: usize = 64;

/// The result of a query about octets that have not arrived, but may still arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The position that the settled octets, or the end of the stream, must reach.
    until: u64,
    awaited: AwaitedEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AwaitedEvent {
    /// Any new segment arrives.
    Anything,
    /// Octets before `until` are settled. `holes` is the number of gaps that were given up before
    /// the query.
    Octets { holes: u64 },
    /// The end of the stream reaches `until`.
    End,
}

impl Pending {
    /// The caller can repeat the query after the next segment of either direction.
    pub(crate) const NEXT: Pending = Pending { until: 0, awaited: AwaitedEvent::Anything };
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct DirectionStream {
    /// Sequence number of the SYN, if the SYN was captured.
    isn: Option<u32>,
    /// Sequence number at [`ORIGIN`].
    base: Option<u32>,
    /// Sequence number of the first FIN.
    fin: Option<u32>,
    fin_segment: Option<fin::FinSegment>,
    /// Position of the latest segment, to convert sequence numbers to positions.
    last: u64,
    /// Captured octets before `settled`.
    runs: VecDeque<Run>,
    /// Captured octets after `settled`, by their first position. The pieces do not overlap.
    waiting: BTreeMap<u64, (Vec<u8>, Source)>,
    /// Number of octets in `waiting`.
    waiting_octets: usize,
    /// Number of pieces in `waiting` that possibly come from keep-alives.
    probes: usize,
    /// Number of pieces in `waiting` that are doubted.
    doubted: usize,
    /// Whether a segment of this direction has a correct checksum.
    has_right_checksum: bool,
    /// Start positions of segments from `consumed` on, in order. `ends` has the end positions.
    starts: VecDeque<u64>,
    ends: VecDeque<u64>,
    /// Number of octets in `runs` and `waiting`. `sources` is the number of sources of these octets
    /// (see [`Source`]).
    buffered: usize,
    sources: usize,
    consumed: u64,
    settled: u64,
    end: u64,
    /// Number of gaps that were given up.
    holes: u64,
    begun: bool,
    finished: bool,
    seen: bool,
}

/// The state from which [`DirectionStream::resumed`] continues an evicted direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectionRecord {
    isn: Option<u32>,
    base: Option<u32>,
    fin: Option<u32>,
    end: u64,
    seen: bool,
}

impl DirectionStream {
    /// A direction in which only the SYN was captured.
    pub(crate) fn opened(isn: u32) -> Self {
        DirectionStream { isn: Some(isn), base: Some(isn.wrapping_add(1)), ..DirectionStream::default() }
    }

    /// A direction that continues at `position` or at the position after its last octet. The higher
    /// of these two positions counts.
    pub(crate) fn resumed(record: &DirectionRecord, position: u64) -> Self {
        let DirectionRecord { isn, base, fin, end, seen } = *record;
        let at = if seen { position.max(end) } else { 0 };
        let (last, consumed, settled) = (at, at, at);
        DirectionStream {
            isn,
            base,
            fin,
            last,
            consumed,
            settled,
            end: at,
            seen,
            begun: seen,
            ..DirectionStream::default()
        }
    }

    /// The record for [`DirectionStream::resumed`]. The record does not contain unread octets.
    pub(crate) fn record(&self) -> DirectionRecord {
        DirectionRecord { isn: self.isn, base: self.base, fin: self.fin, end: self.end, seen: self.seen }
    }

    /// Registers a segment. If the segment has unread octets, returns its octets. The reader can
    /// then read these octets without a copy. After that, the caller must pass them to
    /// [`DirectionStream::keep`].
    pub(crate) fn arrive<'a>(&mut self, segment: &Segment<'a>) -> Option<SegmentOctets<'a>> {
        let seq = segment.seq.wrapping_add(u32::from(segment.syn));
        if segment.syn {
            self.has_right_checksum |= Checksum::of(segment) == Checksum::Right;
            self.isn = Some(segment.seq);
            if !self.seen {
                self.base = Some(seq);
            } else if !self.begun {
                self.begin_at(seq);
            }
        }
        if segment.fin {
            let fin = seq.wrapping_add(segment.wire_len);
            self.fin.get_or_insert(fin);
            self.record_fin(segment, fin);
        }
        if segment.rst || segment.wire_len == 0 || self.finished {
            return None;
        }
        let is_probe = segment.wire_len == 1;
        if is_probe && self.base.is_none() {
            return None;
        }
        let base = *self.base.get_or_insert(seq);
        if !self.seen {
            self.seen = true;
            (self.last, self.consumed, self.settled, self.end) = (ORIGIN, ORIGIN, ORIGIN, ORIGIN);
        }
        let position = self.position(seq, base);
        let end = position.saturating_add(u64::from(segment.wire_len));
        self.last = position;
        if position < self.consumed && self.isn.is_none() && !self.begun {
            self.reopen(position);
        }
        if end <= self.consumed {
            return None;
        }
        self.end = self.end.max(end);
        insert_position(&mut self.starts, position, self.consumed);
        insert_position(&mut self.ends, end, self.consumed);
        let Segment { frame, time, offset, .. } = *segment;
        let source = Source { position, frame, time, offset, is_probe, is_damaged: false, is_doubted: false };
        Some(SegmentOctets::new(segment.octets, source))
    }

    /// Stores the unread octets of `segment`, which [`DirectionStream::arrive`] returned as
    /// `arrived`. Octets that are already stored change only if they are doubted or possibly come
    /// from a keep-alive.
    pub(crate) fn keep(&mut self, arrived: &SegmentOctets<'_>, segment: &Segment<'_>) {
        if !self.has_unread() {
            return;
        }
        if let Some((octets, source)) = arrived.after(self.settled) {
            let checksum = Checksum::of(segment);
            self.has_right_checksum |= checksum == Checksum::Right;
            let is_doubted = checksum == Checksum::Wrong && self.has_right_checksum;
            let source = Source { is_damaged: is_doubted, is_doubted, ..source };
            if source.position == self.settled && self.waiting.is_empty() && !is_doubted {
                self.settle_octets(source, Cow::Borrowed(octets));
                self.buffered += octets.len();
                self.sources += 1;
            } else {
                self.wait(octets, source);
            }
        }
        self.settle();
    }

    /// Moves the start of the direction to `position`. Call this if an octet before the first octet
    /// arrives and no octet was read yet. Settled octets become waiting octets, because octets
    /// between `position` and the settled octets may still arrive.
    fn reopen(&mut self, position: u64) {
        for run in std::mem::take(&mut self.runs) {
            for (octets, source) in run.pieces() {
                self.waiting_octets += octets.len();
                self.probes += usize::from(source.is_probe);
                self.waiting.insert(source.position, (octets.to_vec(), source));
            }
        }
        (self.consumed, self.settled) = (position, position);
    }

    /// Moves the start of the direction to the octet with sequence number `seq`. Call this if the
    /// SYN arrives after octets of its direction. The octet with sequence number `seq` gets the
    /// position [`ORIGIN`].
    fn begin_at(&mut self, seq: u32) {
        let by = u64::from(self.base.map_or(0, |base| base.wrapping_sub(seq)));
        if self.consumed + by < ORIGIN {
            return;
        }
        self.reopen(self.consumed);
        let moved = |(at, (octets, source)): (u64, (Vec<u8>, Source))| {
            (at + by, (octets, Source { position: source.position + by, ..source }))
        };
        self.waiting = std::mem::take(&mut self.waiting).into_iter().map(moved).collect();
        self.starts.iter_mut().chain(&mut self.ends).for_each(|at| *at += by);
        (self.last, self.end, self.base) = (self.last + by, self.end + by, Some(seq));
        (self.consumed, self.settled) = (ORIGIN, ORIGIN);
    }

    /// Converts a sequence number to a position. Of the possible positions, returns the position
    /// that is nearest to the latest segment.
    fn position(&self, seq: u32, base: u32) -> u64 {
        let last = (self.last.wrapping_sub(ORIGIN)) as u32;
        let diff = seq.wrapping_sub(base).wrapping_sub(last).cast_signed();
        self.last.saturating_add_signed(i64::from(diff))
    }

    /// Moves `settled` past captured octets, and past gaps that are given up.
    fn settle(&mut self) {
        loop {
            while let Some(first) = self.waiting.first_entry()
                && *first.key() == self.settled
                && !first.get().1.is_doubted
            {
                let (octets, source) = first.remove();
                self.waiting_octets -= octets.len();
                self.probes -= usize::from(source.is_probe);
                self.settle_octets(source, Cow::Owned(octets));
            }
            if self.settled >= self.end {
                return;
            }
            let segments = self.ends.len() - self.ends.partition_point(|end| *end <= self.settled);
            let hurry = self.finished || self.waiting_octets + segments * SEGMENT_WEIGHT > MAX_WAITING_OCTETS;
            if !hurry {
                return;
            }
            if let Some((_, source)) = self.waiting.get_mut(&self.settled) {
                // No other segment has replaced the doubted octets, so they count.
                source.is_doubted = false;
                self.doubted -= 1;
                continue;
            }
            self.holes += 1;
            while let Some((&position, (_, source))) = self.waiting.first_key_value()
                && source.is_probe
            {
                self.take(position);
            }
            self.settled = self.waiting.first_key_value().map_or(self.end, |(position, _)| *position);
        }
    }

    /// Adds octets at `settled` to the runs.
    #[inline]
    fn settle_octets(&mut self, source: Source, octets: Cow<'_, [u8]>) {
        self.settled = source.position + octets.len() as u64;
        match self.runs.back_mut() {
            Some(run) if run.end() == source.position => run.push(&octets, source),
            _ => self.runs.push_back(Run::new(octets.into_owned(), source)),
        }
    }

    /// Records that reading has started. From now on, octets before the first octet are ignored.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    /// Returns whether reading has started.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Gives up all gaps. Call this when the direction ends.
    pub(crate) fn finish(&mut self) {
        self.extend_to_fin();
        self.finished = true;
        self.settle();
    }

    /// Sequence number of the SYN, if the SYN was captured.
    pub(crate) fn isn(&self) -> Option<u32> {
        self.isn
    }

    /// Sequence number at [`ORIGIN`], if the direction has octets.
    pub(crate) fn first_seq(&self) -> Option<u32> {
        self.base.filter(|_| self.seen)
    }

    /// Returns whether the direction has payload octets. Octets that were not captured count, too.
    pub(crate) fn has_octets(&self) -> bool {
        self.seen
    }

    /// Returns whether there are unread octets. Octets that were not captured count, too.
    pub(crate) fn has_unread(&self) -> bool {
        self.consumed < self.end
    }

    /// The first gap. Returns two sequence numbers: of the first octet of the gap, and of the octet
    /// after the gap.
    pub(crate) fn first_hole(&self) -> Option<(u32, u32)> {
        let after = self.waiting.first_key_value().map_or(self.end, |(position, _)| *position);
        let (first, after) = (self.sequence_number(self.settled)?, self.sequence_number(after.max(self.settled))?);
        Some((first, after)).filter(|_| first != after)
    }

    /// Position of the first unread octet.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Position after the highest octet known to exist.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Sequence number at `position`.
    pub(crate) fn sequence_number(&self, position: u64) -> Option<u32> {
        let base = self.base?;
        Some(base.wrapping_add(position.wrapping_sub(ORIGIN) as u32))
    }

    /// Sequence number after the highest octet known to exist.
    pub(crate) fn end_seq(&self) -> Option<u32> {
        let octets = if self.seen { self.end.wrapping_sub(ORIGIN) as u32 } else { 0 };
        self.base.map(|base| base.wrapping_add(octets))
    }

    /// Sequence number of the first FIN.
    pub(crate) fn fin(&self) -> Option<u32> {
        self.fin
    }

    /// Returns whether a FIN directly follows the highest octet known to exist.
    pub(crate) fn ends_with_fin(&self) -> bool {
        self.fin.is_some() && self.fin == self.end_seq()
    }

    /// Returns whether `position` is after the last octet of the direction.
    ///
    /// # Errors
    /// [`Pending`] if further octets may arrive at `position`.
    pub(crate) fn is_end(&self, position: u64) -> Result<bool, Pending> {
        if position < self.end {
            Ok(false)
        } else if self.finished {
            Ok(true)
        } else {
            Err(Pending { until: position.saturating_add(1), awaited: AwaitedEvent::End })
        }
    }

    /// Returns whether the caller must still wait for the event in `pending`.
    pub(crate) fn still_awaits(&self, pending: &Pending) -> bool {
        !self.finished
            && match pending.awaited {
                AwaitedEvent::Anything => false,
                AwaitedEvent::Octets { holes } => self.settled < pending.until && self.holes == holes,
                AwaitedEvent::End => self.end < pending.until,
            }
    }

    /// Returns whether no further octets can arrive.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Number of stored octets, plus [`SEGMENT_WEIGHT`] for each source (a frame that supplied
    /// contiguous octets).
    pub(crate) fn weight(&self) -> usize {
        self.buffered + self.sources * SEGMENT_WEIGHT
    }

    /// Approximate memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let front = self.runs.front().map_or(0, Run::capacity);
        self.buffered.max(front) + (self.sources + self.starts.len()) * SEGMENT_WEIGHT
    }

    /// Position before which octets cannot change any more.
    pub(crate) fn settled(&self) -> u64 {
        self.settled
    }
}

/// Adds `position` to an ordered list. Does nothing if the list already has the position, or if the
/// position is before `consumed`.
#[inline]
fn insert_position(list: &mut VecDeque<u64>, position: u64, consumed: u64) {
    if position < consumed {
        return;
    }
    match list.back() {
        Some(last) if *last >= position => {
            if let Err(index) = list.binary_search(&position) {
                list.insert(index, position);
            }
        }
        _ => list.push_back(position),
    }
}

#[cfg(test)]
mod tests;
