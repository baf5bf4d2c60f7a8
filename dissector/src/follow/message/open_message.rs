//! A message whose last segment has not arrived. When the last segment arrives, the offsets of all
//! segments show whether the segments form a complete message.
//!
//! The size of an open message is fixed. It keeps sums over its segments, and no list of them.

use std::ops::Range;

use weft_core::wire::ddp::{Msn, RawTagged, RawUntagged, Segment};
use weft_core::wire::rdmap::Opcode;

use super::unexplained_faults::{Gap, UnexplainedFaults};
use crate::follow::remark::{Remark, RemarkKind};
use crate::follow::segment_location::SegmentLocation;
use crate::frame_number::FrameNumber;
use crate::parse::Location;
use crate::parse::{SegmentView, ULPDU_AT};

const MO: Range<usize> = ULPDU_AT + 14..ULPDU_AT + 18;
const TO: Range<usize> = ULPDU_AT + 6..ULPDU_AT + 14;

/// A complete message whose segments were all captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedMessage {
    /// Octets of payload of the message.
    pub len: u64,
    /// Number of segments.
    pub segments: u32,
    /// Frame of the first segment.
    pub frame: FrameNumber,
    /// When the first segment was captured, in nanoseconds since 1970.
    pub time: u64,
}

/// A message whose last segment has not arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenMessage {
    pub(super) at: SegmentLocation,
    pub(super) latest: SegmentLocation,
    pub(super) opcode: Opcode,
    pub(super) msn: Msn,
    pub(super) stag: u32,
    pub(super) ulp: (u8, u32),
    /// The offsets `first`, `next`, `low` and `high` count from this value. For an untagged
    /// message, it is 0. For a tagged message, it is the TO of the first segment.
    pub(super) base: u64,
    pub(super) first: i64,
    pub(super) next: i64,
    pub(super) low: i64,
    pub(super) high: i64,
    /// Octets of payload in the first segment.
    pub(super) first_len: u32,
    pub(super) sum: u64,
    /// The sum of the hashes ([`hash_offset`]) of all start offsets of segments, minus the sum of
    /// the hashes of all end offsets. In a complete message, the end of each segment except the
    /// last is the start of another segment. So only the lowest start and the highest end remain in
    /// the difference.
    pub(super) tally: u64,
    pub(super) segments: u32,
    /// Whether the first segments may be missing in the capture.
    pub(super) partial: bool,
    /// Numbers of the first and the latest segment. The numbers count all segments of the
    /// direction.
    pub(super) numbers: (u64, u64),
    pub(super) jump: Option<Jump>,
}

/// The first segment that does not begin where the payload of the previous segment ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jump {
    octets: Location,
    segment: u32,
    expected: i64,
    found: i64,
}

impl OpenMessage {
    pub(super) fn new(at: SegmentLocation, view: &SegmentView<'_>, msn: Msn, stag: u32, base: u64, first: i64) -> Self {
        let word = match view.segment {
            Segment::Untagged(header, _) => header.ulp_word.get(),
            Segment::Tagged(..) => 0,
        };
        OpenMessage {
            at,
            latest: at,
            opcode: view.opcode(),
            msn,
            stag,
            ulp: (view.header[1], word),
            base,
            first,
            next: first,
            low: first,
            high: first,
            first_len: view.payload_len,
            sum: 0,
            tally: 0,
            segments: 0,
            partial: false,
            numbers: (0, 0),
            jump: None,
        }
    }

    /// Converts a TO into an offset from the TO of the first segment.
    pub(super) fn offset_of(&self, to: u64) -> i64 {
        to.wrapping_sub(self.base).cast_signed()
    }

    pub(super) fn add(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        offset: i64,
        ulp: (u8, u32),
        remarks: &mut Vec<Remark>,
    ) {
        if offset != self.next && self.jump.is_none() {
            let segment = self.segments;
            self.jump = Some(Jump { octets: at.header, segment, expected: self.next, found: offset });
        }
        if ulp != self.ulp {
            let tagged = view.header_len == RawTagged::LEN;
            let kind = RemarkKind::UlpChanged { tagged, from: self.ulp, to: ulp };
            remarks.push(at.remark(kind, ULPDU_AT + 1..ULPDU_AT + if tagged { 2 } else { 6 }));
        }
        let end = offset.saturating_add(i64::from(view.payload_len));
        self.next = end;
        self.low = self.low.min(offset);
        self.high = self.high.max(end);
        self.sum += u64::from(view.payload_len);
        self.tally = self.tally.wrapping_add(hash_offset(offset)).wrapping_sub(hash_offset(end));
        self.segments = self.segments.saturating_add(1);
        self.latest = at;
    }

    /// Call this when the last segment has arrived. Checks that the segments form a complete
    /// message. Returns `None` if segments may be missing in the capture.
    pub(super) fn end(
        &self,
        at: SegmentLocation,
        tagged: bool,
        unexplained: &mut UnexplainedFaults,
        remarks: &mut Vec<Remark>,
    ) -> Option<CompletedMessage> {
        if self.partial {
            return None;
        }
        let field = if tagged { TO } else { MO };
        let mut remark = |kind, octets, here: bool| {
            remarks.push(if here { at.remark(kind, field.clone()) } else { at.earlier(kind, octets) });
        };
        let absolute = |offset: i64| self.base.wrapping_add(offset.cast_unsigned());
        let edges = hash_offset(self.low).wrapping_sub(hash_offset(self.high));
        // The distance of two TOs can be more than half of the address space. Therefore the
        // difference is unsigned.
        let spread = self.high.wrapping_sub(self.low).cast_unsigned();
        let covers = self.tally == edges && self.sum == spread;
        if !tagged && self.low != 0 {
            let kind = RemarkKind::FirstOffset(u32::try_from(self.low).unwrap_or(u32::MAX));
            remark(kind, self.at.header, self.segments == 1);
        } else if let Some(jump) = self.jump {
            let (expected, found) = (absolute(jump.expected), absolute(jump.found));
            let missing = self.lacks_segments(spread);
            if missing {
                unexplained.gap.get_or_insert(Gap { tagged, expected, found, octets: jump.octets });
            }
            let kind = if covers {
                RemarkKind::Order { tagged, expected, found }
            } else {
                RemarkKind::Offset { tagged, expected, found, missing }
            };
            remark(kind, jump.octets, jump.segment + 1 == self.segments);
        } else if self.first != 0 && covers {
            remark(RemarkKind::Order { tagged, expected: 0, found: absolute(self.first) }, self.at.header, false);
        }
        if self.sum == 0 && self.segments > 1 {
            let header = ULPDU_AT..ULPDU_AT + if tagged { RawTagged::LEN } else { RawUntagged::LEN };
            remarks.push(at.remark(RemarkKind::EmptySegments(self.segments), header));
        }
        Some(CompletedMessage { len: self.sum, segments: self.segments, frame: self.at.frame, time: self.at.time })
    }

    /// Returns whether the sender left out segments of the message. `spread` is the distance from
    /// the lowest to the highest offset. All segments except the last usually have the same length.
    /// If the missing octets are not a multiple of this length, or if the message is longer than
    /// the maximum, an offset is wrong instead.
    fn lacks_segments(&self, spread: u64) -> bool {
        let missing = spread.saturating_sub(self.sum);
        let len = u64::from(self.first_len);
        missing > 0 && len > 0 && missing.is_multiple_of(len) && u32::try_from(spread).is_ok()
    }
}

/// Hashes an offset. Sums of different offsets can match by chance, but sums of their hashes
/// practically never match.
fn hash_offset(offset: i64) -> u64 {
    let mixed = offset.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
