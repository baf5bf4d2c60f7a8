//! Assembles messages from segments: queue, MSN and MO, or STag and TO, decide which message a
//! segment continues.
//!
//! One message can be open for each queue and each of the two tagged kinds. A sender may not have
//! more open, so memory is constant. After octets that the capture does not hold, nothing is known
//! of a direction: open messages are dropped, and numbers are compared again only from the next
//! message on. What does not fit becomes a [`Remark`].

use weft_core::wire::ddp::{RawTagged, RawUntagged, Segment};
use weft_core::wire::rdmap::Opcode;

use super::remark::{Remark, What};
use crate::direction::Direction;
use crate::parse::Located;
use crate::parse::{SegmentView, ULPDU_AT, queue_of};

/// Where and when a segment is observed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    /// 0 or 1.
    pub direction: Direction,
    /// Frame.
    pub frame: u64,
    /// In nanoseconds since 1970.
    pub time: u64,
    /// Where its DDP header is, as far as that is in one piece.
    pub header: Located,
}

/// The role of a segment in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// Is it the first segment?
    pub first: bool,
    /// The message that it ends.
    pub ended: Option<Ended>,
}

/// A complete message, of which every segment was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Octets of payload.
    pub len: u64,
    /// Segments.
    pub segments: u32,
    /// Frame of the first segment.
    pub frame: u64,
    /// When that was captured.
    pub time: u64,
}

/// A message whose last segment has not come.
#[derive(Debug, Clone, Copy)]
struct Open {
    at: At,
    latest: At,
    opcode: Opcode,
    msn: u32,
    stag: u32,
    ulp: (u8, u32),
    /// MO 0, or the TO of the first segment; offsets below count from here.
    base: u64,
    first: i64,
    next: i64,
    low: i64,
    high: i64,
    sum: u64,
    /// Marks of all beginnings less those of all ends: a complete message leaves only its two
    /// edges.
    tally: u64,
    segments: u32,
    /// May its first segments be among the octets that are missing?
    partial: bool,
    /// The numbers of its first and of its latest segment in the direction.
    numbers: (u64, u64),
    jump: Option<Jump>,
}

/// The first segment that does not begin where the payload before it ended.
#[derive(Debug, Clone, Copy)]
struct Jump {
    octets: Located,
    segment: u32,
    expected: i64,
    found: i64,
}

/// The message that ended last.
#[derive(Debug, Clone, Copy)]
struct Done {
    at: At,
    msn: u32,
    last_mo: u32,
    stag: u32,
    /// Its lowest MO or TO.
    low: u64,
}

/// A message without a last segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unended {
    /// What it is.
    pub opcode: Opcode,
    /// The frame of its latest segment.
    pub frame: u64,
    /// Where DDP's control octet of that segment is.
    pub control: Located,
    /// Did its sender begin and end another message after that segment?
    pub passed: bool,
    /// The control octet of an earlier segment with L=1, if the message ends exactly where that
    /// segment begins.
    pub early_last: Option<Located>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Channel {
    /// Was the end of a message observed since octets were missing?
    in_step: bool,
    next_msn: Option<u32>,
    /// Range of MSNs (from..to) that were skipped.
    skipped: Option<(u32, u32)>,
    open: Option<Open>,
    done: Option<Done>,
}

const WRITE: usize = 4;
const RESPONSE: usize = 5;

/// The messages of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Messages {
    /// Was everything observed from the first FPDU on?
    complete: bool,
    /// By QN, then Writes and Read Responses.
    channels: [Channel; 6],
    /// Segments so far.
    count: u64,
    /// The number of the first segment of the message that began last among the finished messages.
    ended: u64,
}

const QN: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 10;
const MSN: std::ops::Range<usize> = ULPDU_AT + 10..ULPDU_AT + 14;
const MO: std::ops::Range<usize> = ULPDU_AT + 14..ULPDU_AT + 18;
const STAG: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;
const TO: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 14;

impl Messages {
    /// The direction begins, and the capture has it from its first octet.
    pub(crate) fn begin(&mut self) {
        *self = Messages { complete: true, ..Messages::default() };
    }

    /// Octets are missing, or not trustworthy.
    pub(crate) fn lose(&mut self) {
        *self = Messages::default();
    }

    /// Is every octet of the direction's FPDUs known?
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// A message that is open: its opcode, and the frame of its latest segment.
    pub(crate) fn unfinished(&self) -> Option<(Opcode, u64)> {
        self.channels.iter().filter_map(|channel| channel.open).map(|open| (open.opcode, open.latest.frame)).next()
    }

    /// A message without an end, of which all segments so far are known.
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

    /// Processes a segment. `sink` is the sink of the next Read Response to this direction's peer.
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
                // Its queue is not known. The next MSN of the correct queue is no longer known
                // either.
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
    /// Compares the MSN of a message that begins.
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

    /// TO as an offset from the first segment.
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

    /// The last segment has arrived. Checks that the segments make a complete message; `None` if
    /// not all of them are known.
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
        // Two TOs can be further apart than half the address space.
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

/// A pseudorandom number for an offset, so far from those of other offsets that sums of a few do
/// not match by chance.
fn mark(offset: i64) -> u64 {
    let mixed = offset.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

impl At {
    /// A remark on octets `range` of the unit at hand.
    pub(crate) fn remark(self, what: What, range: std::ops::Range<usize>) -> Remark {
        Remark { what, direction: self.direction, range, octets: self.header }
    }

    /// A remark on octets of an earlier unit.
    pub(crate) fn earlier(self, what: What, octets: Located) -> Remark {
        Remark { what, direction: self.direction, range: 0..0, octets }
    }

    /// Where DDP's control octet is.
    fn control(self) -> Located {
        self.header.part(0..1)
    }
}
