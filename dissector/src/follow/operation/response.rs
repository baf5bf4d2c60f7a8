//! Processes responses: finds the request that each response answers, and compares both.

use weft_core::wire::ddp::Segment;

use super::{MOST, Operations, Overrun, Request, RequestKind};
use crate::fact::Operation;
use crate::follow::early::{Early, Key};
use crate::follow::message::{At, Place};
use crate::follow::remark::{Remark, What};
use crate::parse::{SegmentView, ULPDU_AT};

const STAG: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;
const TO: std::ops::Range<usize> = ULPDU_AT + 6..ULPDU_AT + 14;
const IDENTIFIER: std::ops::Range<usize> = ULPDU_AT + 18..ULPDU_AT + 22;

impl Operations {
    /// Processes a segment of a Read Response to this requester. Returns the finished operation
    /// after the last segment.
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

    /// Records that a response is complete. Checks whether all requests are answered now.
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
        // After missing octets, a segment that begins at a sink of a known request begins a
        // Response.
        let begins_sink = || self.requests.iter().any(|request| request.kind.has_sink(stag, to));
        let index = if place.first || !self.certain && self.current.is_none() && begins_sink() {
            if let Some(unended) = self.current.take() {
                // The previous Response had no last segment. `Messages` reports that.
                self.requests.remove(unended);
            }
            self.begin_response(at, view, (stag, to), remarks)?
        } else if let Some(index) = self.current.filter(|index| *index < self.requests.len()) {
            index
        } else {
            match self.early.back_mut().filter(|early| early.ended.is_none()) {
                Some(open) => open.add(at, view),
                // The request may come late.
                None if !self.certain => self.early(at, view, Key::Sink(stag, to)),
                None => {}
            }
            return None;
        };
        let request = &mut self.requests[index];
        let RequestKind::Read(read) = request.kind else { return None };
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
            // The remark covers the ULPDU length and the L bit of the last segment.
            remarks.push(at.remark(what, 0..ULPDU_AT + 1));
        }
        self.current = None;
        self.complete(index, at)
    }

    /// Finds the request that a new Response answers. Returns the index of the request in
    /// `requests`.
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
        let exact = self.requests.iter().position(|request| request.kind.has_sink(stag, to));
        let Some(oldest) = self.requests.front() else {
            self.early(at, view, Key::Sink(stag, to));
            return None;
        };
        let earlier_atomic = oldest.kind.is_atomic();
        if let Some(index) = exact.filter(|index| *index > 0) {
            if view.payload_len == 0 && matches!(oldest.kind, RequestKind::Read(read) if read.rdmardsz == 0) {
                // STag and TO of a zero-length Response are not checked.
                return Some(0);
            }
            let what = What::ResponseOrder { atomic: false, earlier_atomic };
            remarks.push(at.remark(what, STAG.start..TO.end));
            return Some(index);
        }
        if exact.is_none() {
            let first_read = self.requests.iter().position(|request| !request.kind.is_atomic());
            let Some(index) = first_read else {
                self.early(at, view, Key::Sink(stag, to));
                return None;
            };
            if index > 0 {
                remarks.push(at.remark(What::ResponseOrder { atomic: false, earlier_atomic }, STAG.start..TO.end));
            }
            let RequestKind::Read(read) = self.requests[index].kind else { return None };
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

    /// Finds the request that a new Response answers, if not all unanswered requests are known.
    /// Earlier requests than the one that the Response names were answered in octets missing in the
    /// capture. A request in a later frame than the Response is not considered.
    ///
    /// If several requests have the same sink, the Response answers the latest of them, provided
    /// that never more than one request was outstanding. Otherwise the result is `None`.
    fn begin_uncertain_response(&mut self, at: At, view: &SegmentView<'_>, (stag, to): (u32, u64)) -> Option<usize> {
        let answers = |request: &Request| request.kind.has_sink(stag, to) && request.frame < at.frame;
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

    /// Records how many requests were outstanding when a response began in frame `begun`: the
    /// requests in the queue plus `more`.
    pub(super) fn note_depth(&mut self, begun: u64, more: usize) {
        if self.certain {
            let depth = self.requests.iter().filter(|request| request.frame < begun).count() + more;
            self.deepest = self.deepest.max(Some(depth));
        }
    }

    /// Processes an Atomic Response to this requester. Returns the finished operation.
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
        let of = |request: &Request| match request.kind {
            RequestKind::Atomic { identifier, .. } => Some(identifier),
            RequestKind::Read(_) => None,
        };
        let exact = self.requests.iter().position(|request| of(request) == Some(found));
        let index = if self.certain {
            let Some(oldest) = self.requests.front() else {
                self.early(at, view, Key::Identifier(found));
                return None;
            };
            let earlier_atomic = oldest.kind.is_atomic();
            let any = self.requests.iter().position(|request| request.kind.is_atomic());
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
        if let RequestKind::Atomic { fetch_add, offset, .. } = self.requests[index].kind
            && offset % 8 != 0
            && self.certain
        {
            remarks.push(at.remark(What::MisalignedAnswered { fetch_add, offset }, 0..0));
        }
        self.requests[index].begun = Some(at.frame);
        self.complete(index, at)
    }

    /// Matches an Atomic Response whose identifier was not captured. Such a response answers the
    /// oldest atomic request.
    fn atomic_response_without_identifier(&mut self, at: At) -> Option<Operation> {
        let index = self.requests.iter().position(|request| request.kind.is_atomic()).filter(|_| self.certain)?;
        self.requests[index].begun = Some(at.frame);
        self.complete(index, at)
    }

    /// Keeps a response whose request has not been processed yet.
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
        if !request.kind.is_atomic() {
            Overrun::answered(&mut self.overrun, request.frame, at.frame);
        }
        Overrun::answered(&mut self.mixed_overrun, request.frame, at.frame);
        Some(request.operation(u8::from(at.direction.peer()), at))
    }
}
