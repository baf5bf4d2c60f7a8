//! Operations of two messages: Reads and atomics, each request with its response, and how many are without one.
//!
//! Responses come in the order of the requests, so a queue for each requester is enough. It is bounded by [`MOST`]. Beyond it,
//! and after octets that the capture does not hold, a Response is matched by its sink, and nothing is judged: many requests may
//! have the same sink. A response that is seen before its request waits for it ([`Early`]). [`Backlog`] tells when every request is
//! known to be answered; from then on the queue is certain again.

use std::collections::VecDeque;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{AtomicOpcode, Opcode, RawAtomicRequest, RawReadRequest, ReadRequest};
use zerocopy::FromBytes;

use super::backlog::Backlog;
use super::early::{Early, Key};
use super::message::{At, Place};
use super::remark::{Remark, What};
use crate::fact::Operation;
use crate::rules::{SegmentView, ULPDU_AT};
use crate::unit::Located;

/// Requests without response that are kept for each requester.
const MOST: usize = 4096;
const STAG: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;
const TO: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 14;
const IDENTIFIER: std::ops::Range<usize> = ULPDU_AT + 18..ULPDU_AT + 22;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// An RDMA Read.
    Read(ReadRequest),
    /// An atomic operation.
    Atomic {
        /// Its Request Identifier.
        identifier: u32,
        /// A FetchAdd?
        fetch_add: bool,
        /// Remote TO.
        offset: u64,
    },
}

impl Asked {
    fn is_atomic(&self) -> bool {
        matches!(self, Asked::Atomic { .. })
    }

    /// Does a response with this key answer it?
    fn is_answered_by(&self, key: Key) -> bool {
        match (self, key) {
            (Asked::Read(read), Key::Sink(stag, to)) => read.sink_stag == stag && read.sink_to == to,
            (Asked::Atomic { identifier, .. }, Key::Identifier(found)) => *identifier == found,
            (Asked::Read(_), Key::Identifier(_)) | (Asked::Atomic { .. }, Key::Sink(..)) => false,
        }
    }

    fn has_sink(&self, stag: u32, to: u64) -> bool {
        matches!(self, Asked::Read(read) if read.sink_stag == stag && read.sink_to == to)
    }
}

/// A request that has no whole response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// What was asked for.
    pub asked: Asked,
    /// MSN on queue 1.
    pub msn: u32,
    /// Its frame.
    pub frame: u64,
    /// Stream position behind its FPDU.
    pub end: u64,
    time: u64,
    outstanding: u32,
    /// Octets of the response that were seen.
    pub answered: u64,
    /// The frame of the first of them.
    begun: Option<u64>,
    segments: u32,
    /// Was its response seen first? Then nothing is judged of that.
    is_late: bool,
}

/// More requests without response than were agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overrun {
    /// The frame of the request that was too many.
    pub frame: u64,
    /// Its header.
    pub header: Located,
    /// How many there were.
    pub outstanding: u32,
    /// How many there may be.
    pub limit: u32,
}

impl Overrun {
    /// The request of frame `requested` was answered in frame `answered`. If that was before the request that seemed too many, the
    /// capture handed the response out late.
    fn answered(overrun: &mut Option<Self>, requested: u64, answered: u64) {
        if let Some(Overrun { frame, outstanding, limit, .. }) = overrun
            && answered < *frame
            && requested < *frame
        {
            *outstanding -= 1;
            if *outstanding <= *limit {
                *overrun = None;
            }
        }
    }
}

/// The operations of one requester.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations {
    requests: VecDeque<Request>,
    /// The position in `requests` of the one whose Response is on its way.
    current: Option<usize>,
    /// Is every request without response known?
    certain: bool,
    backlog: Backlog,
    /// Responses that came before their requests, oldest first.
    early: VecDeque<Early>,
    /// The header of the first that came before any request.
    first_early: Option<(Located, Opcode)>,
    /// The first overrun by Reads alone that no later look has explained away.
    overrun: Option<Overrun>,
    /// The same of Reads and atomic operations together.
    mixed_overrun: Option<Overrun>,
    /// The most requests that were under way at a time, by the order of frames, while all were known.
    deepest: Option<usize>,
    /// How many requests may be without response.
    limit: Option<u32>,
}

impl Operations {
    /// Both directions are captured from their first octet.
    pub(crate) fn begin(&mut self) {
        self.certain = true;
    }

    /// Octets are missing, in which there may have been `requests`; else responses. What was seen is still matched, and not judged.
    pub(crate) fn lose(&mut self, requests: bool) {
        let mut backlog = self.backlog;
        backlog.lose(self.outstanding(), requests || self.certain && !self.early.is_empty());
        let (requests, early) = (std::mem::take(&mut self.requests), std::mem::take(&mut self.early));
        let Operations { limit, deepest, .. } = *self;
        *self = Operations { requests, early, limit, deepest, backlog, ..Operations::default() };
    }

    /// At most this many requests may be without response.
    pub(crate) fn limit(&mut self, limit: u32) {
        self.limit = Some(limit);
    }

    /// Requests without whole response, oldest first; none when they are not all known.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|_| self.certain)
    }

    /// How many requests are without whole response; `None` when they are not all known.
    pub(crate) fn outstanding(&self) -> Option<usize> {
        self.certain.then_some(self.requests.len())
    }

    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.requests.capacity() * size_of::<Request>() + self.early.capacity() * size_of::<Early>()
    }

    /// The Read Request with `msn`.
    pub(crate) fn request(&self, msn: u32) -> Option<&Request> {
        self.requests.iter().find(|request| request.msn == msn)
    }

    /// The first response that no request asked for.
    pub(crate) fn unsolicited(&self) -> Option<(Located, Opcode)> {
        self.first_early.filter(|_| self.certain && !self.early.is_empty())
    }

    /// The first overrun by Reads alone.
    pub(crate) fn overrun(&self) -> Option<Overrun> {
        self.overrun.filter(|_| self.certain)
    }

    /// The first overrun if atomic operations count as well.
    pub(crate) fn mixed_overrun(&self) -> Option<Overrun> {
        self.mixed_overrun.filter(|_| self.certain)
    }

    /// Is `stag`, `to` the sink of a Read without response?
    pub(crate) fn awaits(&self, stag: u32, to: u64) -> bool {
        self.requests.iter().any(|request| request.asked.has_sink(stag, to))
    }

    /// Is no request without response, for certain?
    pub(crate) fn is_idle(&self) -> bool {
        self.certain && self.requests.is_empty()
    }

    /// Where the next Read Response belongs.
    pub(crate) fn next_sink(&self) -> Option<(u32, u64)> {
        if self.current.is_some() {
            return None;
        }
        self.requests.iter().find_map(|request| match request.asked {
            Asked::Read(read) => Some((read.sink_stag, read.sink_to)),
            Asked::Atomic { .. } => None,
        })
    }

    /// The requester sends a request, in an FPDU that ends at stream position `end`. Its response may have been seen already.
    pub(crate) fn requested(
        &mut self,
        at: At,
        end: u64,
        view: &SegmentView<'_>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let asked = match view.opcode() {
            Opcode::READ_REQUEST => view
                .payload
                .get(0..RawReadRequest::LEN)
                .filter(|_| view.payload_len as usize == RawReadRequest::LEN)
                .and_then(|octets| ReadRequest::parse(octets).ok())
                .map(Asked::Read),
            _ => view
                .payload
                .get(0..RawAtomicRequest::LEN)
                .filter(|_| view.payload_len as usize == RawAtomicRequest::LEN)
                .and_then(|octets| RawAtomicRequest::ref_from_bytes(octets).ok())
                .map(|raw| Asked::Atomic {
                    identifier: raw.request_identifier.get(),
                    fetch_add: raw.opcode() == AtomicOpcode::FETCH_ADD,
                    offset: raw.remote_tagged_offset.get(),
                }),
        };
        let Segment::Untagged(header, _) = view.segment else { return None };
        let msn = header.msn.get();
        let is_full = self.requests.len() >= MOST;
        let Some(asked) = asked.filter(|_| !is_full) else {
            self.lose(false);
            self.backlog.requested(msn);
            if is_full {
                self.requests.clear();
            }
            return None;
        };
        self.backlog.requested(msn);
        let outstanding = u32::try_from(self.requests.len() + 1).unwrap_or(u32::MAX);
        let (frame, time) = (at.frame, at.time);
        let (answered, begun, segments, is_late) = (0, None, 0, false);
        let request = Request { asked, msn, frame, end, time, outstanding, answered, begun, segments, is_late };
        if self.certain && !self.early.is_empty() {
            // Its response was seen first: the capture has the directions out of step.
            let early = self.early.pop_front()?;
            return self.answered_early(request, early, at, remarks);
        }
        let answers = |early: &Early| asked.is_answered_by(early.key) && early.begun > at.frame;
        if let Some(index) = self.early.iter().position(answers) {
            let early = self.early.drain(..=index).next_back()?;
            return self.answered_early(request, early, at, remarks);
        }
        self.requests.push_back(request);
        // The zero-length Read that ends the start-up may be sent whatever was agreed on (RFC 6581 section 9.1).
        let is_ready_to_receive = msn == 1 && matches!(asked, Asked::Read(read) if read.rdmardsz == 0);
        if let Some(limit) = self.limit.filter(|_| self.certain)
            && outstanding > limit
            && !is_ready_to_receive
        {
            let (frame, header) = (at.frame, at.header);
            let reads = self.requests.iter().filter(|request| !request.asked.is_atomic()).count() as u32;
            if reads > limit && !asked.is_atomic() {
                self.overrun.get_or_insert(Overrun { frame, header, outstanding: reads, limit });
            }
            if reads < outstanding {
                self.mixed_overrun.get_or_insert(Overrun { frame, header, outstanding, limit });
            }
        }
        None
    }

    /// The response to `request`, which comes now, was seen first. One that was captured first says nothing of when it was sent.
    fn answered_early(
        &mut self,
        request: Request,
        early: Early,
        at: At,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        if !request.asked.is_answered_by(early.key) || early.begun < request.frame {
            return None;
        }
        let Early { begun, answered, segments, ended, .. } = early;
        let request = Request { begun: Some(begun), answered, segments, is_late: true, ..request };
        if let Asked::Atomic { fetch_add, offset, .. } = request.asked
            && offset % 8 != 0
            && self.certain
        {
            let (what, responder) = (What::MisalignedAnswered { fetch_add, offset }, 1 - at.direction);
            remarks
                .push(At { direction: responder, ..at }.earlier(what, Located { frame: begun, ..Located::default() }));
        }
        self.note_depth(begun, 1);
        match ended {
            Some((frame, time)) => Some(request.operation(u8::from(at.direction == 1), At { frame, time, ..at })),
            None => {
                self.requests.push_front(request);
                self.current = Some(0);
                None
            }
        }
    }

    /// A segment of a Read Response to this requester.
    pub(crate) fn read_response(
        &mut self,
        at: At,
        view: &SegmentView<'_>,
        place: Place,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let done = self.match_response(at, view, place, remarks);
        if view.last() {
            self.answered();
        }
        done
    }

    /// A response is complete: are they all?
    fn answered(&mut self) {
        if self.certain {
            return;
        }
        self.backlog.answered();
        if self.backlog.is_empty() {
            self.requests.clear();
            self.early.clear();
            self.certain = true;
        }
    }

    fn match_response(
        &mut self,
        at: At,
        view: &SegmentView<'_>,
        place: Place,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let Segment::Tagged(header, _) = view.segment else { return None };
        let (stag, to) = (header.stag.get(), header.tagged_offset.get());
        // Behind octets that are missing, the place of the segment tells.
        let begins_sink = || self.requests.iter().any(|request| request.asked.has_sink(stag, to));
        let index = if place.first || !self.certain && self.current.is_none() && begins_sink() {
            if let Some(unended) = self.current.take() {
                // Its Response had no last segment; the books of messages say so.
                self.requests.remove(unended);
            }
            self.begin_response(at, view, (stag, to), remarks)?
        } else if let Some(index) = self.current.filter(|index| *index < self.requests.len()) {
            index
        } else {
            match self.early.back_mut().filter(|early| early.ended.is_none()) {
                Some(open) => open.add(at, view),
                // Its request may come late. If it does not begin here, no request names this sink.
                None if !self.certain => self.early(at, view, Key::Sink(stag, to)),
                None => {}
            }
            return None;
        };
        let request = &mut self.requests[index];
        let Asked::Read(read) = request.asked else { return None };
        let is_judged = self.certain && !request.is_late;
        if !place.first && stag != read.sink_stag && is_judged {
            let what = What::SinkStag { expected: read.sink_stag, found: stag, later: true };
            remarks.push(at.remark(what, STAG));
        }
        request.begun.get_or_insert(at.frame);
        request.answered += u64::from(view.payload_len);
        request.segments = request.segments.saturating_add(1);
        if !view.last() {
            self.current = Some(index);
            return None;
        }
        let request = *request;
        let wrong = request.answered != u64::from(read.rdmardsz) || read.rdmardsz == 0 && request.segments > 1;
        if wrong && is_judged {
            let what =
                What::ResponseLength { expected: read.rdmardsz, found: request.answered, segments: request.segments };
            // The length, and the bit that says that it is all.
            remarks.push(at.remark(what, 0..ULPDU_AT + 1));
        }
        self.current = None;
        self.complete(index, at)
    }

    /// Which request a Response begins to answer.
    fn begin_response(
        &mut self,
        at: At,
        view: &SegmentView<'_>,
        (stag, to): (u32, u64),
        remarks: &mut Vec<Remark>,
    ) -> Option<usize> {
        if !self.certain {
            return self.begin_uncertain_response(at, view, (stag, to));
        }
        let exact = self.requests.iter().position(|request| request.asked.has_sink(stag, to));
        let Some(oldest) = self.requests.front() else {
            self.early(at, view, Key::Sink(stag, to));
            return None;
        };
        let earlier_atomic = oldest.asked.is_atomic();
        if let Some(index) = exact.filter(|index| *index > 0) {
            if view.payload_len == 0 && matches!(oldest.asked, Asked::Read(read) if read.rdmardsz == 0) {
                // STag and TO of a zero-length Response say nothing.
                return Some(0);
            }
            let what = What::ResponseOrder { atomic: false, earlier_atomic };
            remarks.push(at.remark(what, STAG.start..TO.end));
            return Some(index);
        }
        if exact.is_none() {
            let first_read = self.requests.iter().position(|request| !request.asked.is_atomic());
            let Some(index) = first_read else {
                self.early(at, view, Key::Sink(stag, to));
                return None;
            };
            if index > 0 {
                remarks.push(at.remark(What::ResponseOrder { atomic: false, earlier_atomic }, STAG.start..TO.end));
            }
            let Asked::Read(read) = self.requests[index].asked else { return None };
            if view.payload_len == 0 && read.rdmardsz == 0 {
                return Some(index);
            }
            if read.sink_stag != stag {
                let what = What::SinkStag { expected: read.sink_stag, found: stag, later: false };
                remarks.push(at.remark(what, STAG));
            }
            if read.sink_to != to {
                remarks.push(at.remark(What::SinkOffset { expected: read.sink_to, found: to }, TO));
            }
            return Some(index);
        }
        Some(0)
    }

    /// The same where not every request without response is known. What came before the request that the response names was answered
    /// where the capture has a hole. Octets that waited for missing ones come late: their request is not a later frame.
    ///
    /// If several requests have that sink, it is the latest one if there was never more than one under way; else nobody knows.
    fn begin_uncertain_response(&mut self, at: At, view: &SegmentView<'_>, (stag, to): (u32, u64)) -> Option<usize> {
        let answers = |request: &Request| request.asked.has_sink(stag, to) && request.frame < at.frame;
        let Some(oldest) = self.requests.iter().position(answers) else {
            self.early(at, view, Key::Sink(stag, to));
            return None;
        };
        let latest = self.requests.iter().rposition(answers).unwrap_or(oldest);
        if oldest == latest || self.deepest == Some(1) {
            self.requests.drain(..latest);
            return Some(0);
        }
        self.requests.drain(..=oldest);
        None
    }

    /// Notes how many requests were under way when a response began in frame `begun`, besides `more`.
    fn note_depth(&mut self, begun: u64, more: usize) {
        if self.certain {
            let depth = self.requests.iter().filter(|request| request.frame < begun).count() + more;
            self.deepest = self.deepest.max(Some(depth));
        }
    }

    /// An Atomic Response to this requester.
    pub(crate) fn atomic_response(
        &mut self,
        at: At,
        view: &SegmentView<'_>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let done = self.match_atomic_response(at, view, remarks);
        self.answered();
        done
    }

    fn match_atomic_response(
        &mut self,
        at: At,
        view: &SegmentView<'_>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let Some(found) = view.payload.get(0..IDENTIFIER.len()).and_then(|octets| octets.try_into().ok()) else {
            return self.atomic_response_without_identifier(at);
        };
        let found = u32::from_be_bytes(found);
        let of = |request: &Request| match request.asked {
            Asked::Atomic { identifier, .. } => Some(identifier),
            Asked::Read(_) => None,
        };
        let exact = self.requests.iter().position(|request| of(request) == Some(found));
        let index = if self.certain {
            let Some(oldest) = self.requests.front() else {
                self.early(at, view, Key::Identifier(found));
                return None;
            };
            let earlier_atomic = oldest.asked.is_atomic();
            let any = self.requests.iter().position(|request| request.asked.is_atomic());
            let Some(index) = exact.or(any) else {
                self.early(at, view, Key::Identifier(found));
                return None;
            };
            if index > 0 && self.current != Some(0) {
                remarks.push(at.remark(What::ResponseOrder { atomic: true, earlier_atomic }, IDENTIFIER));
            }
            if exact.is_none()
                && let Some(expected) = of(&self.requests[index])
            {
                remarks.push(at.remark(What::Identifier { expected, found }, IDENTIFIER));
            }
            index
        } else if let Some(index) = exact {
            self.requests.drain(..index);
            0
        } else {
            self.early(at, view, Key::Identifier(found));
            return None;
        };
        if let Asked::Atomic { fetch_add, offset, .. } = self.requests[index].asked
            && offset % 8 != 0
            && self.certain
        {
            remarks.push(at.remark(What::MisalignedAnswered { fetch_add, offset }, 0..0));
        }
        self.requests[index].begun = Some(at.frame);
        self.complete(index, at)
    }

    /// The same if the capture lacks the identifier: it answers the oldest atomic
    /// request.
    fn atomic_response_without_identifier(&mut self, at: At) -> Option<Operation> {
        let index = self.requests.iter().position(|request| request.asked.is_atomic()).filter(|_| self.certain)?;
        self.requests[index].begun = Some(at.frame);
        self.complete(index, at)
    }

    /// A response without a request.
    fn early(&mut self, at: At, view: &SegmentView<'_>, key: Key) {
        if self.certain {
            self.first_early.get_or_insert((at.header, view.opcode()));
        }
        if self.early.len() == MOST {
            self.early.pop_front();
        }
        self.early.push_back(Early::new(at, view, key));
    }

    fn complete(&mut self, index: usize, at: At) -> Option<Operation> {
        let request = self.requests.remove(index)?;
        self.note_depth(request.begun.unwrap_or(at.frame), 1);
        if let Some(current) = &mut self.current
            && *current > index
        {
            *current -= 1;
        }
        if !request.asked.is_atomic() {
            Overrun::answered(&mut self.overrun, request.frame, at.frame);
        }
        Overrun::answered(&mut self.mixed_overrun, request.frame, at.frame);
        Some(request.operation(u8::from(at.direction == 0), at))
    }
}

impl Request {
    /// It is answered, last in `at`; `direction` is the requester's.
    fn operation(&self, direction: u8, at: At) -> Operation {
        Operation {
            direction,
            atomic: self.asked.is_atomic(),
            len: match self.asked {
                Asked::Read(read) => read.rdmardsz,
                Asked::Atomic { .. } => 8,
            },
            outstanding: self.outstanding,
            frames: (self.frame, self.begun.unwrap_or(at.frame), at.frame),
            latency: at.time.saturating_sub(self.time),
        }
    }
}
