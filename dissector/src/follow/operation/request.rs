//! Processes requests of RDMA Reads and of atomic operations.

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::rdmap::{AtomicOpcode, Opcode, RawAtomicRequest, RawReadRequest, ReadRequest};
use zerocopy::FromBytes;

use super::{MAX_REQUESTS, Operations, Overrun, Request, RequestKind};
use crate::fact::Operation;
use crate::follow::early_responses::EarlyResponse;
use crate::follow::remark::{Remark, RemarkKind};
use crate::follow::segment_location::SegmentLocation;
use crate::parse::Location;
use crate::parse::SegmentView;

impl Operations {
    /// Processes a request in an FPDU that ends at stream position `end`. Returns the finished
    /// operation if the complete response was processed before the request.
    pub(crate) fn record_request(
        &mut self,
        at: SegmentLocation,
        end: u64,
        view: &SegmentView<'_>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        let kind = match view.opcode() {
            Opcode::READ_REQUEST => view
                .payload
                .get(0..RawReadRequest::LEN)
                .filter(|_| view.payload_len as usize == RawReadRequest::LEN)
                .and_then(|octets| ReadRequest::parse(octets).ok())
                .map(RequestKind::Read),
            _ => view
                .payload
                .get(0..RawAtomicRequest::LEN)
                .filter(|_| view.payload_len as usize == RawAtomicRequest::LEN)
                .and_then(|octets| RawAtomicRequest::ref_from_bytes(octets).ok())
                .map(|raw| RequestKind::Atomic {
                    identifier: raw.request_identifier.get(),
                    fetch_add: raw.opcode() == AtomicOpcode::FETCH_ADD,
                    offset: raw.remote_tagged_offset.get(),
                }),
        };
        let Segment::Untagged(header, _) = view.segment else { return None };
        let msn = header.msn();
        let is_full = self.requests.len() >= MAX_REQUESTS;
        let Some(kind) = kind.filter(|_| !is_full) else {
            self.record_loss(false);
            self.backlog.record_request(msn);
            if is_full {
                self.requests.clear();
            }
            return None;
        };
        self.backlog.record_request(msn);
        let outstanding = u32::try_from(self.requests.len() + 1).unwrap_or(u32::MAX);
        let request = Request {
            kind,
            msn,
            frame: at.frame,
            end,
            time: at.time,
            outstanding: self.certain.then_some(outstanding),
            answered: 0,
            response_frame: None,
            segments: 0,
            is_late: false,
        };
        if self.certain && !self.early_responses.is_empty() {
            // The response was processed before the request, because the monitor reads the
            // directions out of order.
            let early = self.early_responses.pop_front()?;
            return self.match_early_response(request, early, at, remarks);
        }
        let answers = |early: &EarlyResponse| kind.is_answered_by(early.key) && early.first_frame > at.frame;
        if let Some(index) = self.early_responses.iter().position(answers) {
            let early = self.early_responses.drain(..=index).next_back()?;
            return self.match_early_response(request, early, at, remarks);
        }
        self.requests.push_back(request);
        // The zero-length Read that ends the start-up is allowed to exceed the limit. RFC 6581
        // section 9.1 allows the responder to increase its IRD for this Read, but does not require
        // this increase.
        let is_ready_to_receive = msn == Msn::FIRST && matches!(kind, RequestKind::Read(read) if read.rdmardsz == 0);
        if let Some(limit) = self.limit.filter(|_| self.certain)
            && outstanding > limit
            && !is_ready_to_receive
        {
            let (frame, header) = (at.frame, at.header);
            let reads = self.requests.iter().filter(|request| !request.kind.is_atomic()).count() as u32;
            if reads > limit && !kind.is_atomic() {
                self.overrun.get_or_insert(Overrun { frame, header, outstanding: reads, limit });
            }
            if reads < outstanding {
                self.mixed_overrun.get_or_insert(Overrun { frame, header, outstanding, limit });
            }
        }
        None
    }

    /// Matches `request` with the response `early`, which was processed before `request`. If the
    /// response is complete, returns the finished operation.
    fn match_early_response(
        &mut self,
        request: Request,
        early: EarlyResponse,
        at: SegmentLocation,
        remarks: &mut Vec<Remark>,
    ) -> Option<Operation> {
        if !request.kind.is_answered_by(early.key) || early.first_frame < request.frame {
            return None;
        }
        let EarlyResponse { first_frame, answered, segments, last_segment, .. } = early;
        let request = Request { response_frame: Some(first_frame), answered, segments, is_late: true, ..request };
        if let RequestKind::Atomic { fetch_add, offset, .. } = request.kind
            && offset % 8 != 0
            && self.certain
        {
            let (kind, responder) = (RemarkKind::MisalignedAnswered { fetch_add, offset }, at.direction.peer());
            remarks.push(
                SegmentLocation { direction: responder, ..at }
                    .earlier(kind, Location { frame: first_frame, ..Location::default() }),
            );
        }
        self.note_depth(first_frame, 1);
        match last_segment {
            Some((frame, time)) => {
                Some(request.operation(u8::from(at.direction), SegmentLocation { frame, time, ..at }))
            }
            None => {
                self.requests.push_front(request);
                self.current = Some(0);
                None
            }
        }
    }
}
