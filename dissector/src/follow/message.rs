//! Assembles DDP messages from segments. The queue, the MSN and the MO of an untagged segment
//! decide which message it continues. The STag and the TO of a tagged segment decide which message
//! it continues.
//!
//! A message is open until its last segment arrives. One message can be open for each queue and for
//! each of the two tagged opcodes (Write and Read Response). The protocol does not allow more open
//! messages, so memory use is bounded. If octets are missing in the capture, the monitor drops the
//! open messages of the direction. It does not compare later MSNs with the MSNs before the missing
//! octets. If a segment does not fit the earlier segments, a [`Remark`] records this.

mod open_message;
mod unexplained_faults;

use weft_core::wire::ddp::{Msn, RawTagged, RawUntagged, Segment};
use weft_core::wire::rdmap::Opcode;

use super::remark::{Remark, RemarkKind};
use super::segment_location::SegmentLocation;
use crate::frame_number::FrameNumber;
use crate::parse::Location;
use crate::parse::{SegmentView, ULPDU_AT, queue_of};
use open_message::{CompletedMessage, OpenMessage};
use unexplained_faults::UnexplainedFaults;

/// The position of a segment in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentPosition {
    /// Whether the segment is the first segment of its message.
    pub first: bool,
    /// The message that ends with this segment; `None` if the message continues, or if segments of
    /// it are missing.
    pub completed: Option<CompletedMessage>,
}

/// A value for the field `msn` of a tagged message. A tagged message has no MSN, and nothing reads
/// this value.
const NO_MSN: Msn = Msn::new(0);

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
const STAG: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;

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
