//! Assembles DDP messages from segments. Queue, MSN and MO decide which message an untagged segment
//! continues. STag and TO decide for a tagged segment.
//!
//! A message is open until its last segment arrives. One message can be open for each queue and for
//! each of the two tagged opcodes (Write and Read Response). A sender may not have more open, so
//! memory is constant. After octets missing in the capture, the open messages of the direction are
//! dropped, and numbers are compared again only from the next message on. A segment that does not
//! fit the earlier segments becomes a [`Remark`].

use weft_core::wire::ddp::{RawTagged, RawUntagged, Segment};
use weft_core::wire::rdmap::Opcode;

use super::remark::{Remark, What};
use crate::direction::Direction;
use crate::parse::Located;
use crate::parse::{SegmentView, ULPDU_AT, queue_of};

/// Where and when a segment was captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    /// The direction of the segment.
    pub direction: Direction,
    /// Frame number.
    pub frame: u64,
    /// When the frame was captured, in nanoseconds since 1970.
    pub time: u64,
    /// Location of the segment's DDP header, as far as the header is in one piece.
    pub header: Located,
}

/// The position of a segment in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// Whether the segment is the first of its message.
    pub first: bool,
    /// The message that ends with this segment; `None` if the message continues or lacks segments.
    pub ended: Option<Ended>,
}

/// A complete message whose segments were all captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Octets of payload of the message.
    pub len: u64,
    /// Number of segments.
    pub segments: u32,
    /// Frame of the first segment.
    pub frame: u64,
    /// When the first segment was captured, in nanoseconds since 1970.
    pub time: u64,
}

/// A message whose last segment has not arrived.
#[derive(Debug, Clone, Copy)]
struct Open {
    at: At,
    latest: At,
    opcode: Opcode,
    msn: u32,
    stag: u32,
    ulp: (u8, u32),
    /// Base of the offsets below: 0 for an untagged message, the TO of the first segment for a
    /// tagged message.
    base: u64,
    first: i64,
    next: i64,
    low: i64,
    high: i64,
    sum: u64,
    /// Sum of [`mark`] over the start offsets of all segments, less the sum over their end offsets.
    /// In a complete message, all terms cancel except for the lowest start and the highest end.
    tally: u64,
    segments: u32,
    /// Whether the first segments may be missing in the capture.
    partial: bool,
    /// Numbers of the first and the latest segment, counted in the direction.
    numbers: (u64, u64),
    jump: Option<Jump>,
}

/// The first segment that does not begin where the payload of the previous segment ended.
#[derive(Debug, Clone, Copy)]
struct Jump {
    octets: Located,
    segment: u32,
    expected: i64,
    found: i64,
}

/// The last completed message of a queue or tagged opcode.
#[derive(Debug, Clone, Copy)]
struct Done {
    at: At,
    msn: u32,
    last_mo: u32,
    stag: u32,
    /// Lowest MO or TO of the message.
    low: u64,
}

/// A message without a last segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unended {
    /// RDMAP's opcode of the message.
    pub opcode: Opcode,
    /// The frame of the latest segment.
    pub frame: u64,
    /// Location of DDP's control octet of the latest segment.
    pub control: Located,
    /// Whether the sender began and ended another message after the latest segment.
    pub passed: bool,
    /// The control octet of an earlier segment with L=1, if the message ends exactly where that
    /// segment begins.
    pub early_last: Option<Located>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Channel {
    /// Whether a complete message was captured since octets were last missing.
    in_step: bool,
    next_msn: Option<u32>,
    /// The latest range of skipped MSNs: the first skipped MSN, and the MSN after the range.
    skipped: Option<(u32, u32)>,
    open: Option<Open>,
    done: Option<Done>,
}

const WRITE: usize = 4;
const RESPONSE: usize = 5;

/// The messages of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Messages {
    /// Whether all octets were captured from the first FPDU on.
    complete: bool,
    /// Index 0 to 3: untagged queues by QN. Index 4 and 5: Writes and Read Responses.
    channels: [Channel; 6],
    /// Number of segments so far.
    count: u64,
    /// The highest segment number at which a finished message began.
    ended: u64,
}

const QN: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 10;
const MSN: std::ops::Range<usize> = ULPDU_AT + 10..ULPDU_AT + 14;
const MO: std::ops::Range<usize> = ULPDU_AT + 14..ULPDU_AT + 18;
const STAG: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;
const TO: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 14;

impl Messages {
    /// Starts the direction. The capture has all octets from the first one on.
    pub(crate) fn begin(&mut self) {
        *self = Messages { complete: true, ..Messages::default() };
    }

    /// Records that octets are missing or not trustworthy.
    pub(crate) fn lose(&mut self) {
        *self = Messages::default();
    }

    /// Returns whether all FPDUs of the direction were captured.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns an open message: its opcode, and the frame of its latest segment.
    pub(crate) fn unfinished(&self) -> Option<(Opcode, u64)> {
        self.channels.iter().filter_map(|channel| channel.open).map(|open| (open.opcode, open.latest.frame)).next()
    }

    /// Returns a message that lacks its last segment and whose segments so far were all captured.
    pub(crate) fn unended(&self) -> Option<Unended> {
        self.channels.iter().find_map(|channel| {
            let open = channel.open.filter(|open| !open.partial)?;
            let end = open.base.wrapping_add(open.high.cast_unsigned());
            let goes_before = |done: &Done| open.sum > 0 && done.stag == open.stag && done.low == end;
            Some(Unended {
                opcode: open.opcode,
                frame: open.latest.frame,
                control: open.latest.control(),
                passed: self.ended > open.numbers.1,
                early_last: channel.done.filter(goes_before).map(|done| done.at.control()),
            })
        })
    }

    /// Processes a segment. `sink` is STag and TO where the next Read Response in this direction
    /// should begin.
    pub(crate) fn segment(
        &mut self,
        at: At,
        view: &SegmentView<'_>,
        sink: Option<(u32, u64)>,
        remarks: &mut Vec<Remark>,
    ) -> Place {
        self.count += 1;
        match view.segment {
            Segment::Untagged(header, _) => self.untagged(at, header, view, remarks),
            Segment::Tagged(header, _) => self.tagged(at, header, view, sink, remarks),
        }
    }

    fn untagged(&mut self, at: At, header: &RawUntagged, view: &SegmentView<'_>, remarks: &mut Vec<Remark>) -> Place {
        let opcode = view.opcode();
        let (qn, msn, mo) = (header.qn.get(), header.msn.get(), header.mo.get());
        let Some(queue) = queue_of(opcode) else { return Place::default() };
        let (complete, number) = (self.complete, self.count);
        let channel = &mut self.channels[queue as usize];
        let goes_on = |open: &Open| mo != 0 && i64::from(mo) == open.next;
        if qn != queue {
            if !channel.open.is_some_and(|open| open.msn == msn && goes_on(&open)) {
                // The QN is wrong, so the message's queue is not known. The next MSN of the correct
                // queue is no longer known either.
                *channel = Channel::default();
                self.complete = false;
                return Place::default();
            }
            remarks.push(at.remark(What::QnChanged { from: queue, to: qn }, QN));
        }
        let mut place = Place::default();
        match channel.open {
            Some(open) if open.msn == msn => {}
            Some(open) if goes_on(&open) => {
                remarks.push(at.remark(What::MsnChanged { from: open.msn, to: msn }, MSN));
            }
            before => {
                if let Some(open) = before {
                    remarks.push(at.earlier(What::NotLast(open.opcode), open.latest.control()));
                } else if let Some(done) = channel.done
                    && done.msn == msn
                    && (mo != 0 || done.low > 0 && u64::from(view.payload_len) <= done.low)
                {
                    let again = view.last();
                    remarks
                        .push(at.earlier(What::AfterLast { last: done.last_mo, found: mo, again }, done.at.control()));
                    return place;
                }
                channel.expect(at, opcode, queue, msn, complete, remarks);
                let partial = mo != 0 && !(complete || channel.in_step);
                let numbers = (number, number);
                channel.open = Some(Open { partial, numbers, ..Open::new(at, view, msn, 0, 0, i64::from(mo)) });
                place.first = !partial;
            }
        }
        let ulp = (view.header[1], header.ulp_word.get());
        if let Some(open) = &mut channel.open {
            open.add(at, view, i64::from(mo), ulp, remarks);
            open.numbers.1 = number;
            if view.last() {
                place.ended = open.end(at, false, remarks);
                self.ended = self.ended.max(open.numbers.0);
                channel.done = Some(Done { at, msn, last_mo: mo, stag: 0, low: open.low.cast_unsigned() });
                channel.in_step = true;
                channel.open = None;
            }
        }
        place
    }

    fn tagged(
        &mut self,
        at: At,
        header: &RawTagged,
        view: &SegmentView<'_>,
        sink: Option<(u32, u64)>,
        remarks: &mut Vec<Remark>,
    ) -> Place {
        let (stag, to) = (header.stag.get(), header.tagged_offset.get());
        let (mut own, other) = match view.opcode() {
            Opcode::WRITE => (WRITE, RESPONSE),
            Opcode::READ_RESPONSE => (RESPONSE, WRITE),
            _ => return Place::default(),
        };
        let goes_on = |open: &Open| open.sum > 0 && open.offset_of(to) == open.next;
        if self.channels[own].open.is_none()
            && self.channels[other].open.is_some_and(|open| open.stag == stag && goes_on(&open))
            && sink != Some((stag, to))
        {
            own = other;
        }
        let (complete, number) = (self.complete, self.count);
        let channel = &mut self.channels[own];
        let mut place = Place::default();
        match channel.open {
            Some(open) if open.stag == stag => {}
            Some(open) if goes_on(&open) => {
                let what = What::StagChanged { opcode: open.opcode, from: open.stag, to: stag };
                remarks.push(at.remark(what, STAG));
            }
            before => {
                if let Some(open) = before {
                    remarks.push(at.earlier(What::NotLast(open.opcode), open.latest.control()));
                }
                let partial = !(complete || channel.in_step);
                let numbers = (number, number);
                channel.open = Some(Open { partial, numbers, ..Open::new(at, view, 0, stag, to, 0) });
                place.first = !partial;
            }
        }
        if let Some(open) = &mut channel.open {
            let offset = open.offset_of(to);
            open.add(at, view, offset, (view.header[1], 0), remarks);
            open.numbers.1 = number;
            if view.last() {
                place.ended = open.end(at, true, remarks);
                self.ended = self.ended.max(open.numbers.0);
                let low = open.base.wrapping_add(open.low.cast_unsigned());
                channel.done = Some(Done { at, msn: 0, last_mo: 0, stag: open.stag, low });
                channel.in_step = true;
                channel.open = None;
            }
        }
        place
    }
}

impl Channel {
    /// Compares the MSN of a new message with the expected MSN of the queue.
    fn expect(&mut self, at: At, opcode: Opcode, queue: u32, msn: u32, complete: bool, remarks: &mut Vec<Remark>) {
        let Some(expected) = self.next_msn.or(complete.then_some(1)) else {
            self.next_msn = Some(msn.wrapping_add(1));
            return;
        };
        if expected == msn {
            self.next_msn = Some(msn.wrapping_add(1));
            return;
        }
        let ahead = msn.wrapping_sub(expected) < 1 << 31;
        let was_skipped = self.skipped.is_some_and(|(from, to)| msn.wrapping_sub(from) < to.wrapping_sub(from));
        let what = if self.next_msn.is_none() {
            What::MsnFirst { queue, found: msn }
        } else if ahead {
            What::MsnStep { queue, expected, found: msn }
        } else if was_skipped {
            What::MsnBack { opcode, queue, found: msn }
        } else {
            What::MsnAgain { queue, expected, found: msn }
        };
        remarks.push(at.remark(what, MSN));
        if ahead {
            self.skipped = Some((expected, msn));
            self.next_msn = Some(msn.wrapping_add(1));
        } else if self.next_msn.is_none() {
            self.next_msn = Some(msn.wrapping_add(1));
        }
    }
}

impl Open {
    fn new(at: At, view: &SegmentView<'_>, msn: u32, stag: u32, base: u64, first: i64) -> Self {
        let word = match view.segment {
            Segment::Untagged(header, _) => header.ulp_word.get(),
            Segment::Tagged(..) => 0,
        };
        Open {
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

    fn add(&mut self, at: At, view: &SegmentView<'_>, offset: i64, ulp: (u8, u32), remarks: &mut Vec<Remark>) {
        if offset != self.next && self.jump.is_none() {
            let segment = self.segments;
            self.jump = Some(Jump { octets: at.header, segment, expected: self.next, found: offset });
        }
        if ulp != self.ulp {
            let tagged = view.header_len == RawTagged::LEN;
            let what = What::UlpChanged { tagged, from: self.ulp, to: ulp };
            remarks.push(at.remark(what, ULPDU_AT + 1..ULPDU_AT + if tagged { 2 } else { 6 }));
        }
        let end = offset.saturating_add(i64::from(view.payload_len));
        self.next = end;
        self.low = self.low.min(offset);
        self.high = self.high.max(end);
        self.sum += u64::from(view.payload_len);
        self.tally = self.tally.wrapping_add(mark(offset)).wrapping_sub(mark(end));
        self.segments = self.segments.saturating_add(1);
        self.latest = at;
    }

    /// Checks that the segments form a complete message, after the last segment has arrived.
    /// Returns `None` if segments may be missing in the capture.
    fn end(&self, at: At, tagged: bool, remarks: &mut Vec<Remark>) -> Option<Ended> {
        if self.partial {
            return None;
        }
        let field = if tagged { TO } else { MO };
        let mut remark = |what, octets, here: bool| {
            remarks.push(if here { at.remark(what, field.clone()) } else { at.earlier(what, octets) });
        };
        let absolute = |offset: i64| self.base.wrapping_add(offset.cast_unsigned());
        let edges = mark(self.low).wrapping_sub(mark(self.high));
        // Two TOs can be farther apart than half the address space, so the difference is unsigned.
        let spread = self.high.wrapping_sub(self.low).cast_unsigned();
        let covers = self.tally == edges && self.sum == spread;
        if !tagged && self.low != 0 {
            let what = What::FirstOffset(u32::try_from(self.low).unwrap_or(u32::MAX));
            remark(what, self.at.header, self.segments == 1);
        } else if let Some(jump) = self.jump {
            let (expected, found) = (absolute(jump.expected), absolute(jump.found));
            let missing = self.sum < spread;
            let what = if covers {
                What::Order { tagged, expected, found }
            } else {
                What::Offset { tagged, expected, found, missing }
            };
            remark(what, jump.octets, jump.segment + 1 == self.segments);
        } else if self.first != 0 && covers {
            remark(What::Order { tagged, expected: 0, found: absolute(self.first) }, self.at.header, false);
        }
        if self.sum == 0 && self.segments > 1 {
            let header = ULPDU_AT..ULPDU_AT + if tagged { RawTagged::LEN } else { RawUntagged::LEN };
            remarks.push(at.remark(What::EmptySegments(self.segments), header));
        }
        Some(Ended { len: self.sum, segments: self.segments, frame: self.at.frame, time: self.at.time })
    }
}

/// Hashes an offset, so that sums of the hashes of different offsets do not match by chance.
fn mark(offset: i64) -> u64 {
    let mixed = offset.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

impl At {
    /// Creates a remark on octets `range` of the current unit.
    pub(crate) fn remark(self, what: What, range: std::ops::Range<usize>) -> Remark {
        Remark { what, direction: self.direction, range, octets: self.header }
    }

    /// Creates a remark on octets of an earlier unit.
    pub(crate) fn earlier(self, what: What, octets: Located) -> Remark {
        Remark { what, direction: self.direction, range: 0..0, octets }
    }

    /// Returns the location of DDP's control octet.
    fn control(self) -> Located {
        self.header.part(0..1)
    }
}
