//! Processes inbound segments. For this, the module uses registered memory, the receive queue, the
//! queue of inbound requests (IRRQ) and the Reads in flight. "Draft" means
//! draft-hilland-rddp-verbs-00.

use std::borrow::Cow;

use weft_core::wire::ddp::{RawHeader, queue};
use weft_core::wire::rdmap::{AtomicRequest, AtomicResponse, ReadRequest, Terminate};

use super::machine::{Context, FailedWork, receive};
use super::send_queue::Progress;
use super::source::{join, walk};
use super::table::{QpEvent, QpState};
use super::{InboundRequest, LateSegment, ReceiveOverflow, Request};
use crate::hostile;
use crate::memory::{AccessError, InvalidateBy, Right};
use crate::rdmap::{DataSink, Fault, Received};
use crate::reject::reject_if;
use crate::verbs::async_event::{AsyncEvent, EventId, Resource};
use crate::verbs::completion::CompletionStatus;
use crate::verbs::shared::PlacedPayload;
use crate::verbs::work_request::{Operation, Sge, length};

impl Context<'_> {
    /// Processes one ULPDU.
    pub(in crate::verbs) fn handle_segment(&mut self, ulpdu: &[u8]) {
        match self.qp.state {
            QpState::Rts => {}
            QpState::Closing => return self.segment_while_closing(ulpdu),
            QpState::Terminate | QpState::Idle | QpState::Error => return,
        }
        let Some(mut receiver) = self.qp.receiver.take() else { return };
        let mut sink = Sink {
            header: RawHeader::from_prefix(ulpdu).map(|(header, _)| header),
            context: self,
            failed: None,
            terminate: None,
        };
        let result = receiver.handle_segment(ulpdu, &mut sink);
        let (failed, terminate) = (sink.failed, sink.terminate);
        self.qp.receiver = Some(receiver);
        if let Some(event) = self.qp.local_error {
            self.local_error(event);
        } else if let Some(status) = failed {
            self.work_error(status, FailedWork::Answer);
        } else if let Some(terminate) = terminate {
            self.terminate_received(terminate);
        } else if let Err(error) = result {
            self.segment_error(&error);
        }
        self.drain();
        self.check_local_error();
    }

    /// Returns whether `ulpdu` must wait (draft section 13.2): it begins a Send, no receive is
    /// posted, and the Queue Pair's settings let the Send wait.
    pub(in crate::verbs) fn must_wait(&self, ulpdu: &[u8]) -> bool {
        let qp = &self.qp;
        if qp.init.overflow != ReceiveOverflow::Wait || qp.state != QpState::Rts || qp.receiving.is_some() {
            return false;
        }
        let header = RawHeader::from_prefix(ulpdu).map(|(header, _)| header);
        let is_send = matches!(header, Some(RawHeader::Untagged(untagged)) if untagged.qn.get() == queue::SEND);
        let (empty, failed) = match qp.srq.and_then(|srq| self.shared.srqs.get(srq)) {
            Some(srq) => (srq.posted.is_empty(), srq.failed),
            None => (qp.receives.is_empty(), false),
        };
        is_send && empty && !failed
    }

    /// Handles a segment that arrives in state Closing. Only a Terminate is processed. Any other
    /// segment ends the stream or is dropped (draft Figure 11).
    fn segment_while_closing(&mut self, ulpdu: &[u8]) {
        let mut notes = TerminateOnly(None);
        let version = self.qp.version;
        let _ = crate::rdmap::Receiver::new(version, false).handle_segment(ulpdu, &mut notes);
        match notes.0 {
            Some(terminate) => self.terminate_received(terminate),
            None if self.qp.init.late == LateSegment::Drop => {}
            None => {
                self.react(QpEvent::Segment, super::Cause::event(EventId::BadClose));
            }
        }
    }
}

/// Makes the Queue Pair the [`DataSink`] of the receiver.
struct Sink<'a, 'b> {
    header: Option<RawHeader>,
    context: &'a mut Context<'b>,
    /// Status of a Read that received its data but failed because of a local error.
    failed: Option<CompletionStatus>,
    terminate: Option<Terminate>,
}

impl DataSink for Sink<'_, '_> {
    fn write(&mut self, stag: u32, to: u64, payload: &[u8]) -> Result<(), Fault> {
        let Context { shared, qp, .. } = self.context;
        reject_if(!qp.init.inbound_write, Fault::WriteDisabled)?;
        match shared.memory.locate(qp.accessor(), stag, to, payload.len(), Right::RemoteWrite) {
            Ok(range) => shared.place(PlacedPayload::Write, range, payload),
            Err(error) => {
                shared.refuse_write(stag, to, payload);
                return Err(Fault::Tagged(error));
            }
        }
        let last = self.header.is_some_and(|header| header.control().last());
        if last && hostile::hook::conduct(&self.context.shared.deviations).delivers_writes {
            self.deliver();
        }
        Ok(())
    }

    fn read_response(&mut self, stag: u32, to: u64, payload: &[u8], last: bool) -> Result<(), Fault> {
        let Context { shared, qp, .. } = self.context;
        let (accessor, inbound_write) = (qp.accessor(), qp.init.inbound_write);
        let wqe = qp.sq.waiting().ok_or(Fault::UnexpectedReadResponse)?;
        let (Operation::Read { local, invalidate_local, .. }, Progress::Waiting { arrived }) =
            (&wqe.wr.operation, &mut wqe.progress)
        else {
            return Err(Fault::UnexpectedReadResponse);
        };
        let (local, invalidate) = (*local, *invalidate_local);
        if !payload.is_empty() {
            reject_if(!inbound_write, Fault::WriteDisabled)?;
            reject_if(stag != local.stag, Fault::Tagged(AccessError::InvalidStag))?;
            let end = u64::from(*arrived) + payload.len() as u64;
            let next = local.tagged_offset.wrapping_add(u64::from(*arrived));
            let is_misplaced = to != next && !hostile::hook::conduct(&shared.deviations).appends_responses;
            let wrong = is_misplaced || end > u64::from(local.length);
            reject_if(wrong, Fault::Tagged(AccessError::BaseAndBounds))?;
            let range = shared.memory.locate(accessor, stag, next, payload.len(), Right::RemoteWrite);
            shared.memory.put(range.map_err(Fault::Tagged)?, payload);
            *arrived = u32::try_from(end).unwrap_or(u32::MAX);
        }
        match (last, *arrived == local.length) {
            // Even if all bytes have arrived, an empty last segment can follow.
            (false, _) => {
                if hostile::hook::conduct(&shared.deviations).completes_reads_early {
                    qp.sq.answer(CompletionStatus::Success, None);
                }
                return Ok(());
            }
            (true, false) => return Err(Fault::Tagged(AccessError::BaseAndBounds)),
            (true, true) => {}
        }
        if invalidate && let Err(error) = shared.memory.invalidate(accessor, InvalidateBy::Local, local.stag) {
            self.failed = Some(error.into());
            return Ok(());
        }
        qp.sq.answer(CompletionStatus::Success, None);
        Ok(())
    }

    fn receive_buffer(&mut self) -> Result<u64, Fault> {
        let Context { shared, qp, .. } = self.context;
        if qp.receiving.is_none() {
            let wr = match qp.srq {
                None => qp.receives.pop_front(),
                Some(srq) => {
                    if shared.srqs.get(srq).is_some_and(|srq| srq.failed) {
                        qp.local_error = Some(EventId::SrqErrorOnQp);
                        return Err(Fault::NoBuffer);
                    }
                    let (handle, taken) = shared.take_shared_receive(srq, qp.rq_cq);
                    let (wr, due) = taken.unzip();
                    if due == Some(true) {
                        let event = EventId::SrqLimitReached;
                        shared.notify(AsyncEvent { resource: Resource::Srq(handle), event });
                    }
                    if wr.is_some() {
                        qp.shared_receives += 1;
                    }
                    if qp.rq_limit_armed && qp.shared_receives > qp.init.rq_limit {
                        qp.rq_limit_armed = false;
                        let event = EventId::QpRqLimitReached;
                        shared.notify(AsyncEvent { resource: Resource::Qp(qp.handle, qp.id), event });
                    }
                    wr
                }
            };
            qp.receiving = Some(wr.ok_or(Fault::NoBuffer)?);
        }
        Ok(qp.receiving.as_ref().map_or(0, |wr| length(&wr.scatter)))
    }

    fn receive(&mut self, offset: u32, payload: &[u8]) -> Result<(), Fault> {
        let Context { shared, qp, .. } = self.context;
        let accessor = qp.receive_accessor();
        let Some(wr) = &qp.receiving else { return Err(Fault::NoBuffer) };
        let end = offset.saturating_add(u32::try_from(payload.len()).unwrap_or(u32::MAX));
        // After use, `ranges` is moved back to `shared` to reuse its memory.
        let mut ranges = std::mem::take(&mut shared.ranges);
        ranges.clear();
        let joins_parts = hostile::hook::conduct(&shared.deviations).joins_parts;
        let parts: Cow<'_, [Sge]> =
            if joins_parts { Cow::Owned(join(&wr.scatter)) } else { Cow::Borrowed(&wr.scatter[..]) };
        walk(&shared.memory, accessor, &parts, offset..end, Right::LocalWrite, |range| ranges.push(range))
            .map_err(Fault::Buffer)?;
        let mut rest = payload;
        for range in ranges.drain(..) {
            let (now, later) = rest.split_at(range.len().min(rest.len()));
            shared.place(PlacedPayload::Send, range, now);
            rest = later;
        }
        shared.ranges = ranges;
        Ok(())
    }

    fn received(&mut self, message: Received) -> Result<(), Fault> {
        let Context { shared, qp, .. } = self.context;
        if let Some(stag) = message.invalidate {
            let enabled = qp.init.inbound_read || qp.init.inbound_write;
            let invalidated = shared.memory.invalidate(qp.accessor(), InvalidateBy::Peer { enabled }, stag);
            invalidated.map_err(Fault::Invalidate)?;
        }
        let Some(wr) = qp.receiving.take() else { return Err(Fault::NoBuffer) };
        if message.immediate.is_some() && hostile::hook::conduct(&shared.deviations).immediate_takes_two {
            qp.receives.pop_front();
        }
        let mut completion = receive(wr.wr_id, qp, CompletionStatus::Success);
        completion.octets = message.length;
        completion.invalidated = message.invalidate;
        completion.immediate = message.immediate;
        completion.solicited = message.solicited;
        self.context.complete_receive(completion);
        Ok(())
    }

    fn request_buffer(&mut self) -> Result<(), Fault> {
        let qp = &self.context.qp;
        reject_if(!qp.init.inbound_read, Fault::ReadDisabled)?;
        let held = qp.irrq.len() + usize::from(qp.response.is_some());
        reject_if(held >= qp.ird as usize, Fault::TooManyReads)
    }

    fn read_request(&mut self, request: ReadRequest) -> Result<(), Fault> {
        let Context { shared, qp, .. } = self.context;
        let len = usize::try_from(request.rdmardsz).map_err(|_| Fault::RequestSize)?;
        let right = Right::RemoteRead;
        shared.memory.locate(qp.accessor(), request.src_stag, request.src_to, len, right).map_err(Fault::Source)?;
        qp.irrq.push_back(InboundRequest { header: self.header, request: Request::Read(request) });
        if hostile::hook::conduct(&shared.deviations).delivers_reads {
            self.deliver();
        }
        Ok(())
    }

    fn atomic_request(&mut self, request: AtomicRequest) -> Result<(), Fault> {
        let Context { shared, qp, .. } = self.context;
        for right in [Right::RemoteRead, Right::RemoteWrite] {
            let range =
                shared.memory.locate(qp.accessor(), request.remote_stag, request.remote_tagged_offset, 8, right);
            let range = range.map_err(Fault::Source)?;
            reject_if(!shared.memory.is_aligned_word(range), Fault::Misaligned)?;
        }
        qp.irrq.push_back(InboundRequest { header: self.header, request: Request::Atomic(request) });
        if hostile::hook::conduct(&shared.deviations).delivers_atomics {
            self.deliver();
        }
        Ok(())
    }

    fn atomic_response(&mut self, response: AtomicResponse) -> Result<(), Fault> {
        let sq = &mut self.context.qp.sq;
        let Some(Operation::Atomic { .. }) = sq.waiting().map(|wqe| &wqe.wr.operation) else {
            return Err(Fault::AtomicResponse);
        };
        sq.answer(CompletionStatus::Success, Some(response.original_remote_data_value));
        Ok(())
    }

    fn terminate(&mut self, terminate: Terminate) {
        self.terminate = Some(terminate);
    }
}

impl Sink<'_, '_> {
    /// Completes a receive for a message that must not use a receive. This violation is a
    /// [deviation](crate::hostile).
    fn deliver(&mut self) {
        let qp = &mut self.context.qp;
        if let Some(wr) = qp.receives.pop_front() {
            let completion = receive(wr.wr_id, qp, CompletionStatus::Success);
            self.context.complete_receive(completion);
        }
    }
}

/// A [`DataSink`] that accepts only a Terminate.
struct TerminateOnly(Option<Terminate>);

impl DataSink for TerminateOnly {
    fn terminate(&mut self, terminate: Terminate) {
        self.0 = Some(terminate);
    }
}
