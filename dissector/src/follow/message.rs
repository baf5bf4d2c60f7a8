//! Assembles DDP messages from segments. The queue, the MSN and the MO of an untagged segment
//! decide which message it continues. The STag and the TO of a tagged segment decide which message
//! it continues.
//!
//! A message is open until its last segment arrives. One message can be open for each queue and for
//! each of the two tagged opcodes (Write and Read Response). The protocol does not allow more open
//! messages, so memory use is bounded. If octets are missing in the capture, the monitor drops the
//! open messages of the direction. It does not compare later MSNs with the MSNs before the missing
//! octets. If a segment does not fit the earlier segments, a [`Remark`] records this.

use weft_core::wire::ddp::{Msn, RawTagged, RawUntagged, Segment};
use weft_core::wire::rdmap::Opcode;

use super::remark::{Remark, RemarkKind};
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::Location;
use crate::parse::{SegmentView, ULPDU_AT, queue_of};

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

/// The position of a segment in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentPosition {
    /// Whether the segment is the first segment of its message.
    pub first: bool,
    /// The message that ends with this segment; `None` if the message continues, or if segments of
    /// it are missing.
    pub completed: Option<CompletedMessage>,
}

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

/// A value for the field `msn` of a tagged message. A tagged message has no MSN, and nothing reads
/// this value.
const NO_MSN: Msn = Msn::new(0);

/// A message whose last segment has not arrived.
#[derive(Debug, Clone, Copy)]
struct OpenMessage {
    at: SegmentLocation,
    latest: SegmentLocation,
    opcode: Opcode,
    msn: Msn,
    stag: u32,
    ulp: (u8, u32),
    /// The offsets `first`, `next`, `low` and `high` count from this value. For an untagged
    /// message, it is 0. For a tagged message, it is the TO of the first segment.
    base: u64,
    first: i64,
    next: i64,
    low: i64,
    high: i64,
    /// Octets of payload in the first segment.
    first_len: u32,
    sum: u64,
    /// The sum of the hashes ([`hash_offset`]) of all start offsets of segments, minus the sum of
    /// the hashes of all end offsets. In a complete message, the end of each segment except the
    /// last is the start of another segment. So only the lowest start and the highest end remain in
    /// the difference.
    tally: u64,
    segments: u32,
    /// Whether the first segments may be missing in the capture.
    partial: bool,
    /// Numbers of the first and the latest segment. The numbers count all segments of the
    /// direction.
    numbers: (u64, u64),
    jump: Option<Jump>,
}

/// The first segment that does not begin where the payload of the previous segment ended.
#[derive(Debug, Clone, Copy)]
struct Jump {
    octets: Location,
    segment: u32,
    expected: i64,
    found: i64,
}

/// The last completed message of a queue, or of a tagged opcode.
#[derive(Debug, Clone, Copy)]
struct LastMessage {
    at: SegmentLocation,
    msn: Msn,
    last_mo: u32,
    stag: u32,
    /// Lowest MO or TO of the message.
    low: u64,
}

/// A message without a last segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnfinishedMessage {
    /// RDMAP's opcode of the message.
    pub opcode: Opcode,
    /// The frame of the latest segment.
    pub frame: FrameNumber,
    /// Location of the DDP control octet in the latest segment.
    pub control: Location,
    /// Whether another message began and ended after the latest segment of this message.
    pub has_later_message: bool,
    /// Set if the payload of the previous message begins exactly where this message ends. In this
    /// case, it is possible that the two messages are really one message, and that the sender set
    /// L=1 in a segment too early. The value is the location of the DDP control octet in that
    /// segment.
    pub early_last: Option<Location>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Channel {
    /// Whether the end of a message was captured after the last missing octets.
    is_synchronized: bool,
    next_msn: Option<Msn>,
    /// The latest range of skipped MSNs: the first skipped MSN, and the first MSN after the range.
    skipped: Option<(Msn, Msn)>,
    open: Option<OpenMessage>,
    last_message: Option<LastMessage>,
    unexplained: UnexplainedFaults,
}

/// Faults of a queue, or of a tagged opcode, that later segments can explain: the sender may have
/// sent the missing part later. Therefore the faults are reported when the connection ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnexplainedFaults {
    /// The first MSN of the queue, if it is not 1 and MSN 1 did not follow. The location is the
    /// location of the DDP header.
    pub first_msn: Option<(Msn, Location)>,
    /// The first gap in a message.
    pub gap: Option<Gap>,
}

/// A gap in a message: no segment has the octets between two segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Whether the offsets are TOs. If false, they are MOs.
    pub tagged: bool,
    /// The offset where the gap begins.
    pub expected: u64,
    /// The offset of the segment after the gap.
    pub found: u64,
    /// Location of the DDP header of the segment after the gap.
    pub octets: Location,
}

const WRITE: usize = 4;
const RESPONSE: usize = 5;

/// The messages of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Messages {
    /// Whether all octets from the first FPDU on were captured.
    complete: bool,
    /// Elements 0 to 3 are the untagged queues with QN 0 to 3. Element 4 is for Writes, and element
    /// 5 is for Read Responses.
    channels: [Channel; 6],
    /// Number of segments so far.
    count: u64,
    /// The number of the first segment of an ended message. If several messages have ended, the
    /// highest of these numbers.
    ended: u64,
}

const QN: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 10;
const MSN: std::ops::Range<usize> = ULPDU_AT + 10..ULPDU_AT + 14;
const MO: std::ops::Range<usize> = ULPDU_AT + 14..ULPDU_AT + 18;
const STAG: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;
const TO: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 14;

impl Messages {
    /// Starts the direction. Call this only if the capture has the first octet of the direction.
    pub(crate) fn start(&mut self) {
        *self = Messages { complete: true, ..Messages::default() };
    }

    /// Records that octets are missing or not trustworthy.
    pub(crate) fn record_loss(&mut self) {
        self.channels.iter_mut().for_each(Channel::reset);
        *self = Messages { channels: self.channels, ..Messages::default() };
    }

    /// Returns the faults that later segments did not explain, for each queue and for each tagged
    /// opcode. The number is the QN; it has no meaning for tagged opcodes.
    pub(crate) fn unexplained_faults(&self) -> impl Iterator<Item = (usize, UnexplainedFaults)> {
        self.channels.iter().map(|channel| channel.unexplained).enumerate()
    }

    /// Returns whether all FPDUs of the direction were captured.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the opcode of an open message, and the frame of its latest segment.
    pub(crate) fn open_message(&self) -> Option<(Opcode, FrameNumber)> {
        self.channels.iter().filter_map(|channel| channel.open).map(|open| (open.opcode, open.latest.frame)).next()
    }

    /// Returns a message without its last segment, if all its segments so far were captured.
    pub(crate) fn unfinished_message(&self) -> Option<UnfinishedMessage> {
        self.channels.iter().find_map(|channel| {
            let open = channel.open.filter(|open| !open.partial)?;
            let end = open.base.wrapping_add(open.high.cast_unsigned());
            let goes_before =
                |last_message: &LastMessage| open.sum > 0 && last_message.stag == open.stag && last_message.low == end;
            Some(UnfinishedMessage {
                opcode: open.opcode,
                frame: open.latest.frame,
                control: open.latest.control(),
                has_later_message: self.ended > open.numbers.1,
                early_last: channel.last_message.filter(goes_before).map(|last_message| last_message.at.control()),
            })
        })
    }

    /// Processes a segment. `sink` is the STag and the TO at which the next Read Response in this
    /// direction should begin.
    pub(crate) fn record_segment(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        sink: Option<(u32, u64)>,
        remarks: &mut Vec<Remark>,
    ) -> SegmentPosition {
        self.count += 1;
        match view.segment {
            Segment::Untagged(header, _) => self.record_untagged(at, header, view, remarks),
            Segment::Tagged(header, _) => self.record_tagged(at, header, view, sink, remarks),
        }
    }

    fn record_untagged(
        &mut self,
        at: SegmentLocation,
        header: &RawUntagged,
        view: &SegmentView<'_>,
        remarks: &mut Vec<Remark>,
    ) -> SegmentPosition {
        let opcode = view.opcode();
        let (qn, msn, mo) = (header.qn.get(), header.msn(), header.mo.get());
        let Some(queue) = queue_of(opcode) else { return SegmentPosition::default() };
        let (complete, number) = (self.complete, self.count);
        let channel = &mut self.channels[queue as usize];
        let continues = |open: &OpenMessage| mo != 0 && i64::from(mo) == open.next;
        if qn != queue {
            if !channel.open.is_some_and(|open| open.msn == msn && continues(&open)) {
                // The QN is wrong, so the queue of the message is not known. Therefore the next MSN
                // of the correct queue is also unknown from now on.
                channel.reset();
                self.complete = false;
                return SegmentPosition::default();
            }
            remarks.push(at.remark(RemarkKind::QnChanged { from: queue, to: qn }, QN));
        }
        let mut position = SegmentPosition::default();
        match channel.open {
            Some(open) if open.msn == msn => {}
            Some(open) if continues(&open) => {
                remarks.push(at.remark(RemarkKind::MsnChanged { from: open.msn, to: msn }, MSN));
            }
            before => {
                if let Some(open) = before {
                    remarks.push(at.earlier(RemarkKind::NoLastSegment(open.opcode), open.latest.control()));
                } else if let Some(last_message) = channel.last_message
                    && last_message.msn == msn
                    && (mo != 0 || last_message.low > 0 && u64::from(view.payload_len) <= last_message.low)
                {
                    let again = view.last();
                    if channel.unexplained.gap.is_some_and(|gap| gap.expected == u64::from(mo)) {
                        channel.unexplained.gap = None;
                    }
                    remarks.push(at.earlier(
                        RemarkKind::AfterLast { last: last_message.last_mo, found: mo, again },
                        last_message.at.control(),
                    ));
                    return position;
                }
                channel.expect(at, opcode, queue, msn, complete, remarks);
                let partial = mo != 0 && !(complete || channel.is_synchronized);
                let numbers = (number, number);
                channel.open =
                    Some(OpenMessage { partial, numbers, ..OpenMessage::new(at, view, msn, 0, 0, i64::from(mo)) });
                position.first = !partial;
            }
        }
        let ulp = (view.header[1], header.ulp_word.get());
        if let Some(open) = &mut channel.open {
            open.add(at, view, i64::from(mo), ulp, remarks);
            open.numbers.1 = number;
            if view.last() {
                position.completed = open.end(at, false, &mut channel.unexplained, remarks);
                self.ended = self.ended.max(open.numbers.0);
                channel.last_message =
                    Some(LastMessage { at, msn, last_mo: mo, stag: 0, low: open.low.cast_unsigned() });
                channel.is_synchronized = true;
                channel.open = None;
            }
        }
        position
    }

    fn record_tagged(
        &mut self,
        at: SegmentLocation,
        header: &RawTagged,
        view: &SegmentView<'_>,
        sink: Option<(u32, u64)>,
        remarks: &mut Vec<Remark>,
    ) -> SegmentPosition {
        let (stag, to) = (header.stag.get(), header.tagged_offset.get());
        let (mut own, other) = match view.opcode() {
            Opcode::WRITE => (WRITE, RESPONSE),
            Opcode::READ_RESPONSE => (RESPONSE, WRITE),
            _ => return SegmentPosition::default(),
        };
        let continues = |open: &OpenMessage| open.sum > 0 && open.offset_of(to) == open.next;
        if self.channels[own].open.is_none()
            && self.channels[other].open.is_some_and(|open| open.stag == stag && continues(&open))
            && sink != Some((stag, to))
        {
            own = other;
        }
        let (complete, number) = (self.complete, self.count);
        let channel = &mut self.channels[own];
        let mut position = SegmentPosition::default();
        match channel.open {
            Some(open) if open.stag == stag => {}
            Some(open) if continues(&open) => {
                let kind = RemarkKind::StagChanged { opcode: open.opcode, from: open.stag, to: stag };
                remarks.push(at.remark(kind, STAG));
            }
            before => {
                if let Some(open) = before {
                    remarks.push(at.earlier(RemarkKind::NoLastSegment(open.opcode), open.latest.control()));
                }
                let partial = !(complete || channel.is_synchronized);
                let numbers = (number, number);
                channel.open =
                    Some(OpenMessage { partial, numbers, ..OpenMessage::new(at, view, NO_MSN, stag, to, 0) });
                position.first = !partial;
            }
        }
        if let Some(open) = &mut channel.open {
            let offset = open.offset_of(to);
            open.add(at, view, offset, (view.header[1], 0), remarks);
            open.numbers.1 = number;
            if view.last() {
                position.completed = open.end(at, true, &mut channel.unexplained, remarks);
                self.ended = self.ended.max(open.numbers.0);
                let low = open.base.wrapping_add(open.low.cast_unsigned());
                channel.last_message = Some(LastMessage { at, msn: NO_MSN, last_mo: 0, stag: open.stag, low });
                channel.is_synchronized = true;
                channel.open = None;
            }
        }
        position
    }
}

impl Channel {
    /// Forgets the messages of the channel, but not its faults.
    fn reset(&mut self) {
        *self = Channel { unexplained: self.unexplained, ..Channel::default() };
    }

    /// Compares the MSN of a new message with the expected MSN of the queue.
    fn expect(
        &mut self,
        at: SegmentLocation,
        opcode: Opcode,
        queue: u32,
        msn: Msn,
        complete: bool,
        remarks: &mut Vec<Remark>,
    ) {
        let expected = self.next_msn.or(complete.then_some(Msn::FIRST)).filter(|expected| *expected != msn);
        let Some(expected) = expected else {
            self.next_msn = Some(msn.next());
            return;
        };
        let ahead = msn.is_at_or_after(expected);
        let was_skipped = self.skipped.is_some_and(|(from, to)| msn.messages_since(from) < to.messages_since(from));
        let kind = if self.next_msn.is_none() {
            self.unexplained.first_msn.get_or_insert((msn, at.header));
            RemarkKind::FirstMsn
        } else if ahead {
            RemarkKind::MsnGap { queue, expected, found: msn }
        } else if was_skipped {
            if msn == Msn::FIRST {
                self.unexplained.first_msn = None;
            }
            RemarkKind::MsnOutOfOrder { opcode, queue, found: msn }
        } else {
            RemarkKind::MsnRepeated { queue, expected, found: msn }
        };
        remarks.push(at.remark(kind, MSN));
        if ahead {
            self.skipped = Some((expected, msn));
        }
        if ahead || self.next_msn.is_none() {
            self.next_msn = Some(msn.next());
        }
    }
}

impl OpenMessage {
    fn new(at: SegmentLocation, view: &SegmentView<'_>, msn: Msn, stag: u32, base: u64, first: i64) -> Self {
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
    fn offset_of(&self, to: u64) -> i64 {
        to.wrapping_sub(self.base).cast_signed()
    }

    fn add(
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
    fn end(
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

impl SegmentLocation {
    /// Creates a remark on octets `range` of the current unit.
    pub(crate) fn remark(self, kind: RemarkKind, range: std::ops::Range<usize>) -> Remark {
        Remark { kind, direction: self.direction, range, octets: self.header }
    }

    /// Creates a remark on octets of an earlier unit.
    pub(crate) fn earlier(self, kind: RemarkKind, octets: Location) -> Remark {
        Remark { kind, direction: self.direction, range: 0..0, octets }
    }

    /// Returns the location of DDP's control octet.
    fn control(self) -> Location {
        self.header.part(0..1)
    }
}
