//! Processes responses. Finds the request that each response answers, and compares the request with
//! the response.

use weft_core::wire::ddp::Segment;

use super::{MAX_REQUESTS, Operations, Overrun, Request, RequestKind};
use crate::fact::Operation;
use crate::follow::early_responses::{EarlyResponse, ResponseKey};
use crate::follow::message::SegmentPosition;
use crate::follow::remark::{Remark, RemarkKind};
use crate::follow::segment_location::SegmentLocation;
use crate::frame_number::FrameNumber;
use crate::parse::{SegmentView, ULPDU_AT};

const STAG: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;
const TO: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 14;
const IDENTIFIER: std::ops::Range<usize> = ULPDU_AT + 18..ULPDU_AT + 22;

impl Operations {
    /// Processes a segment of a Read Response to this requester. Returns the finished operation
    /// after the last segment.
    pub(crate) fn record_read_response(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        position: SegmentPosition,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let done = self.match_response(at, view, position, remarks);
        if view.last() {
            self.record_complete_response();
        }
        done
    }

    /// Records that a response is complete. Checks whether this response was the last missing
    /// response.
    fn record_complete_response(&mut self) {
        if self.certain {
            return;
        }
        self.backlog.record_response();
        if self.backlog.is_empty() {
            self.requests.clear();
            self.early_responses.clear();
            self.certain = true;
        }
    }

    fn match_response(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        position: SegmentPosition,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let Segment::Tagged(header, _) = view.segment else { return None };
        let (stag, to) = (header.stag.get(), header.tagged_offset.get());
        // If octets are missing and a segment begins at the sink of a known request, this segment
        // begins a Response.
        let begins_sink = || self.requests.iter().any(|request| request.kind.has_sink(stag, to));
        let index = if position.first || !self.certain && self.current.is_none() && begins_sink() {
            if let Some(unfinished) = self.current.take() {
                // The previous Response had no last segment. `Messages` reports this fault.
                self.requests.remove(unfinished);
            }
            self.begin_response(at, view, (stag, to), remarks)?
        } else if let Some(index) = self.current.filter(|index| *index < self.requests.len()) {
            index
        } else {
            match self.early_responses.back_mut().filter(|early| early.last_segment.is_none()) {
                Some(open) => open.add(at, view),
                // The monitor possibly processes the request later.
                None if !self.certain => self.keep_early_response(at, view, ResponseKey::Sink(stag, to)),
                None => {}
            }
            return None;
        };
        let request = &mut self.requests[index];
        let RequestKind::Read(read) = request.kind else { return None };
        let is_checked = self.certain && !request.is_late;
        if !position.first && stag != read.sink_stag && is_checked {
            let kind = RemarkKind::SinkStag { expected: read.sink_stag, found: stag, later: true };
            remarks.push(at.remark(kind, STAG));
        }
        request.response_frame.get_or_insert(at.frame);
        request.answered += u64::from(view.payload_len);
        request.segments = request.segments.saturating_add(1);
        if !view.last() {
            self.current = Some(index);
            return None;
        }
        let request = *request;
        let wrong = request.answered != u64::from(read.rdmardsz) || read.rdmardsz == 0 && request.segments > 1;
        if wrong && is_checked {
            let kind = RemarkKind::ResponseLength {
                expected: read.rdmardsz,
                found: request.answered,
                segments: request.segments,
            };
            // The remark marks the ULPDU Length of the last segment, and the octet with its L bit.
            remarks.push(at.remark(kind, 0..ULPDU_AT + 1));
        }
        self.current = None;
        self.complete(index, at)
    }

    /// Finds the request that a new Response answers. Returns the index of the request in
    /// `requests`.
    fn begin_response(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        (stag, to): (u32, u64),
        remarks: &mut Vec<Remark>,
    ) -> Option<usize> {
        if !self.certain {
            return self.begin_uncertain_response(at, view, (stag, to));
        }
        let exact = self.requests.iter().position(|request| request.kind.has_sink(stag, to));
        let first_read = || self.requests.iter().position(|request| !request.kind.is_atomic());
        let Some(index) = exact.or_else(first_read) else {
            self.keep_early_response(at, view, ResponseKey::Sink(stag, to));
            return None;
        };
        let is_empty =
            |kind: RequestKind| view.payload_len == 0 && matches!(kind, RequestKind::Read(read) if read.rdmardsz == 0);
        let oldest = self.requests[0].kind;
        if exact.is_some() && is_empty(oldest) {
            // STag and TO of a zero-length Response are not checked.
            return Some(0);
        }
        if index > 0 {
            let kind = RemarkKind::ResponseOrder { atomic: false, earlier_atomic: oldest.is_atomic() };
            remarks.push(at.remark(kind, STAG.start..TO.end));
        }
        let RequestKind::Read(read) = self.requests[index].kind else { return None };
        if is_empty(RequestKind::Read(read)) {
            return Some(index);
        }
        if read.sink_stag != stag {
            let kind = RemarkKind::SinkStag { expected: read.sink_stag, found: stag, later: false };
            remarks.push(at.remark(kind, STAG));
        }
        if read.sink_to != to {
            remarks.push(at.remark(RemarkKind::SinkOffset { expected: read.sink_to, found: to }, TO));
        }
        Some(index)
    }

    /// Finds the request that a new Response answers. Call this if some unanswered requests may be
    /// unknown. Requests before the answered request are dropped, because the responses to these
    /// requests are missing in the capture. Requests in frames after the Response are ignored.
    ///
    /// If several requests have the sink of the Response, the result depends on the maximum number
    /// of outstanding requests so far. If this maximum is 1, the Response answers the latest
    /// request with this sink. If it is larger or unknown, the result is `None`, and the oldest
    /// request with this sink is dropped. If no request has the sink, the Response is kept until
    /// its request arrives.
    fn begin_uncertain_response(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        (stag, to): (u32, u64),
    ) -> Option<usize> {
        let answers = |request: &Request| request.kind.has_sink(stag, to) && request.frame < at.frame;
        let Some(oldest) = self.requests.iter().position(answers) else {
            self.keep_early_response(at, view, ResponseKey::Sink(stag, to));
            return None;
        };
        let latest = self.requests.iter().rposition(answers).unwrap_or(oldest);
        if oldest == latest || self.max_outstanding == Some(1) {
            self.requests.drain(..latest);
            return Some(0);
        }
        self.requests.drain(..=oldest);
        None
    }

    /// Records how many requests were outstanding when a response began in frame `first_frame`. The
    /// number is the count of queued requests from earlier frames, plus `more`.
    pub(super) fn note_depth(&mut self, first_frame: FrameNumber, more: usize) {
        if self.certain {
            let depth = self.requests.iter().filter(|request| request.frame < first_frame).count() + more;
            self.max_outstanding = self.max_outstanding.max(Some(depth));
        }
    }

    /// Processes an Atomic Response to this requester. Returns the finished operation.
    pub(crate) fn record_atomic_response(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let done = self.match_atomic_response(at, view, remarks);
        self.record_complete_response();
        done
    }

    fn match_atomic_response(
        &mut self,
        at: SegmentLocation,
        view: &SegmentView<'_>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let Some(found) = view.payload.get(0..IDENTIFIER.len()).and_then(|octets| octets.try_into().ok()) else {
            return self.atomic_response_without_identifier(at);
        };
        let found = u32::from_be_bytes(found);
        let of = |request: &Request| match request.kind {
            RequestKind::Atomic { identifier, .. } => Some(identifier),
            RequestKind::Read(_) => None,
        };
        let exact = self.requests.iter().position(|request| of(request) == Some(found));
        let index = if self.certain {
            let any = self.requests.iter().position(|request| request.kind.is_atomic());
            let Some(index) = exact.or(any) else {
                self.keep_early_response(at, view, ResponseKey::Identifier(found));
                return None;
            };
            if index > 0 && self.current != Some(0) {
                let kind =
                    RemarkKind::ResponseOrder { atomic: true, earlier_atomic: self.requests[0].kind.is_atomic() };
                remarks.push(at.remark(kind, IDENTIFIER));
            }
            if exact.is_none()
                && let Some(expected) = of(&self.requests[index])
            {
                remarks.push(at.remark(RemarkKind::Identifier { expected, found }, IDENTIFIER));
            }
            index
        } else if let Some(index) = exact {
            self.requests.drain(..index);
            0
        } else {
            self.keep_early_response(at, view, ResponseKey::Identifier(found));
            return None;
        };
        if let RequestKind::Atomic { fetch_add, offset, .. } = self.requests[index].kind
            && offset % 8 != 0
            && self.certain
        {
            remarks.push(at.remark(RemarkKind::MisalignedAnswered { fetch_add, offset }, 0..0));
        }
        self.requests[index].response_frame = Some(at.frame);
        self.complete(index, at)
    }

    /// Matches an Atomic Response whose identifier was not captured. Such a response answers the
    /// oldest atomic request.
    fn atomic_response_without_identifier(&mut self, at: SegmentLocation) -> Option<Operation> {
        let index = self.requests.iter().position(|request| request.kind.is_atomic()).filter(|_| self.certain)?;
        self.requests[index].response_frame = Some(at.frame);
        self.complete(index, at)
    }

    /// Keeps a response whose request has not been processed yet.
    fn keep_early_response(&mut self, at: SegmentLocation, view: &SegmentView<'_>, key: ResponseKey) {
        if self.certain {
            self.first_early_response.get_or_insert((at.header, view.opcode()));
        }
        if self.early_responses.len() == MAX_REQUESTS {
            self.early_responses.pop_front();
        }
        self.early_responses.push_back(EarlyResponse::new(at, view, key));
    }

    fn complete(&mut self, index: usize, at: SegmentLocation) -> Option<Operation> {
        let request = self.requests.remove(index)?;
        // If the monitor processes the response late, the counts of later requests include this
        // request, although it was already answered.
        for later in self.requests.iter_mut().rev().take_while(|later| later.frame > at.frame) {
            later.outstanding = later.outstanding.map(|count| count.saturating_sub(1));
        }
        self.note_depth(request.response_frame.unwrap_or(at.frame), 1);
        if let Some(current) = &mut self.current
            && *current > index
        {
            *current -= 1;
        }
        if !request.kind.is_atomic() {
            Overrun::correct(&mut self.overrun, request.frame, at.frame);
        }
        Overrun::correct(&mut self.mixed_overrun, request.frame, at.frame);
        Some(request.operation(u8::from(at.direction.peer()), at))
    }
}
