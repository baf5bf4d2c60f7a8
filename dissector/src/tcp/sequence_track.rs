//! [`SequenceTrack`]: compares each segment of a direction with the earlier segments of this
//! direction.
//!
//! **Memory.** At most [`MAX_HOLES`] holes are kept. A hole is a range of octets that a segment
//! skipped.

use std::collections::VecDeque;

use super::sequence_number::before;
use crate::ip::Segment;
use crate::path::Path;

/// Maximum number of holes that are kept.
const MAX_HOLES: usize = 8;
/// If a hole is filled after less than this time, the segments were out of order. Otherwise the
/// octets were sent again. In nanoseconds.
const REORDERING: u64 = 3_000_000;

/// The parts of a segment that this module compares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentShape {
    /// Capture time in nanoseconds since 1970.
    pub(crate) time: u64,
    /// The network in which the segment was captured.
    pub(crate) path: Path,
    /// The field Identification of IPv4; `None` for IPv6.
    pub(crate) identification: Option<u16>,
    /// Sequence number.
    pub(crate) seq: u32,
    /// Number of payload octets on the wire.
    pub(crate) len: u32,
    /// SYN.
    pub(crate) syn: bool,
    /// FIN.
    pub(crate) fin: bool,
    /// Whether ACK is set.
    pub(crate) has_ack: bool,
}

impl From<&Segment<'_>> for SegmentShape {
    fn from(segment: &Segment<'_>) -> Self {
        let Segment { time, path, identification, seq, wire_len: len, syn, fin, ack_flag: has_ack, .. } = *segment;
        SegmentShape { time, path, identification, seq, len, syn, fin, has_ack }
    }
}

/// The relation of a segment to the earlier segments of its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// A SYN.
    Syn,
    /// A SYN that was sent before.
    RepeatedSyn,
    /// The octets follow the earlier octets, or the segment is the first of its direction.
    Follows,
    /// The octets are after octets that were not captured so far.
    SkipsOctets,
    /// The segment has no octets.
    Empty,
    /// A keep-alive or a window probe.
    KeepAlive,
    /// The octets fill a hole shortly after it appeared.
    OutOfOrder,
    /// The octets fill an old hole: they were lost before the capture point.
    Refills,
    /// The octets were captured before.
    Repeats,
}

/// A range of sequence numbers that a segment skipped, and the time of this segment.
#[derive(Debug, Clone, Copy)]
struct Hole {
    start: u32,
    end: u32,
    time: u64,
}

/// The octets of one direction so far.
#[derive(Debug, Default)]
pub(crate) struct SequenceTrack {
    /// The sequence number of the last SYN.
    syn: Option<u32>,
    /// The sequence number after the last octet. A FIN counts as one octet.
    next: Option<u32>,
    holes: VecDeque<Hole>,
    /// Sequence number, payload length and IP identification of the last segment.
    latest: Option<(u32, u32, Option<u16>)>,
    path: Option<Path>,
}

impl SequenceTrack {
    /// The sequence number after the last octet. A FIN counts as one octet.
    pub(crate) fn next(&self) -> Option<u32> {
        self.next
    }

    /// Returns whether the segment was captured before, at another point of the network. If not,
    /// the next call compares with this segment.
    pub(crate) fn is_copy(&mut self, segment: &SegmentShape) -> bool {
        let SegmentShape { seq, len, identification, path, .. } = *segment;
        if let Some((latest_seq, latest_len, latest_identification)) = self.latest {
            let is_same = (latest_seq, latest_len) == (seq, len);
            let is_elsewhere = self.path.is_some_and(|first| first != path);
            let is_same_packet = identification.is_some_and(|id| id != 0) && latest_identification == identification;
            if is_same && (is_elsewhere || is_same_packet) {
                return true;
            }
        }
        self.path.get_or_insert(path);
        self.latest = Some((seq, len, identification));
        false
    }

    /// Compares a segment without RST with the octets so far, and adds its octets.
    pub(crate) fn record(&mut self, segment: &SegmentShape) -> Relation {
        let start = segment.seq.wrapping_add(u32::from(segment.syn));
        let end = start.wrapping_add(segment.len).wrapping_add(u32::from(segment.fin));
        if segment.syn {
            self.next = Some(self.next.filter(|next| before(end, *next)).unwrap_or(end));
            let is_repeated = self.syn.replace(segment.seq) == Some(segment.seq);
            return if is_repeated { Relation::RepeatedSyn } else { Relation::Syn };
        }
        let Some(next) = self.next else {
            self.next = Some(end);
            return Relation::Follows;
        };
        let is_probe = start == next.wrapping_sub(1) && segment.len <= 1 && !segment.fin;
        if is_probe && segment.has_ack {
            return Relation::KeepAlive;
        }
        if start == end {
            return Relation::Empty;
        }
        if !before(start, next) {
            self.next = Some(end);
            if start == next {
                return Relation::Follows;
            }
            self.holes.push_back(Hole { start: next, end: start, time: segment.time });
            self.holes.drain(..self.holes.len().saturating_sub(MAX_HOLES));
            return Relation::SkipsOctets;
        }
        if before(next, end) {
            self.next = Some(end);
        }
        let hole = self.holes.iter().position(|hole| before(start, hole.end) && before(hole.start, end));
        match hole.and_then(|hole| self.fill(hole, start, end)) {
            Some(since) if segment.time.saturating_sub(since) < REORDERING => Relation::OutOfOrder,
            Some(_) => Relation::Refills,
            None => Relation::Repeats,
        }
    }

    /// Removes the octets `start..end` from a hole. Returns the time at which the hole appeared.
    fn fill(&mut self, hole: usize, start: u32, end: u32) -> Option<u64> {
        let found = self.holes.get_mut(hole)?;
        let time = found.time;
        if !before(found.start, start) {
            found.start = end;
        } else if !before(end, found.end) {
            found.end = start;
        }
        if !before(found.start, found.end) {
            self.holes.remove(hole);
        }
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::segment;
    use super::*;

    /// Returns the relation of each segment. A segment is its time in milliseconds, its sequence
    /// number and its octets.
    fn relations(segments: &[(u64, u32, &str)]) -> Vec<Relation> {
        let mut track = SequenceTrack::default();
        let shape = |(time, seq, octets): &(u64, u32, &str)| {
            let segment = segment(*seq, octets.as_bytes());
            SegmentShape { time: time * 1_000_000, has_ack: true, ..SegmentShape::from(&segment) }
        };
        segments.iter().map(|segment| track.record(&shape(segment))).collect()
    }

    #[test]
    fn names_the_relation_of_each_segment() {
        use Relation::{Empty, Follows, KeepAlive, OutOfOrder, Refills, Repeats, SkipsOctets};
        let lost = [(0, 100, "abc"), (1, 103, ""), (2, 106, "ghi"), (9, 103, "def"), (9, 100, "abc")];
        assert_eq!(relations(&lost), [Follows, Empty, SkipsOctets, Refills, Repeats]);
        let swapped = [(0, 100, "abc"), (1, 106, "ghi"), (2, 103, "def"), (3, 108, "")];
        assert_eq!(relations(&swapped), [Follows, SkipsOctets, OutOfOrder, KeepAlive]);
    }

    #[test]
    fn a_repeated_syn_has_the_same_sequence_number() {
        let mut track = SequenceTrack::default();
        let syns = [100, 100, 200].map(|seq| SegmentShape { syn: true, ..SegmentShape::from(&segment(seq, b"")) });
        let relations = syns.map(|syn| track.record(&syn));
        assert_eq!(relations, [Relation::Syn, Relation::RepeatedSyn, Relation::Syn]);
    }
}
