//! Selects the next outbound segment. The segment comes from the message in progress, the
//! Terminate, a response, or the next Work Request.
//!
//! The segments of different messages are never mixed. If a response and a Work Request are both
//! due, responses and the messages of Work Requests alternate. Bind, Fast-Register and Invalidate
//! send nothing. Each of these operations is executed at its position in the Send Queue, before the
//! next Work Request begins (VERBS-8.2.2.1-5 to -7).

use bytes::Bytes;
use weft_core::wire::ddp::{Msn, RawHeader, RawUntagged, queue};
use weft_core::wire::rdmap::{
    AtomicRequest, AtomicResponse, Control, Opcode, RawAtomicRequest, RawReadRequest, ReadRequest,
};

use super::machine::{Context, FailedWork};
use super::send_queue::{Progress, Wqe};
use super::source::walk;
use super::table::QpState;
use super::{InboundRequest, Request, Response};
use crate::ddp::{Destination, Segmenter};
use crate::hostile;
use crate::memory::{InvalidateBy, Right, STAG_ZERO};
use crate::rdmap::{Fault, SegmentError};
use crate::reject::reject_if;
use crate::verbs::batch::{Batch, PayloadSource};
use crate::verbs::completion::CompletionStatus;
use crate::verbs::work_request::{Operation, Payload, length};

/// The result of [`Context::add_fpdu`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum Step {
    /// An FPDU was added to the batch.
    Added,
    /// The next operation can change memory to which the batch refers. Therefore the caller has to
    /// send the batch before it calls `add_fpdu` again.
    Flush,
    /// Nothing has to be sent.
    Nothing,
}

impl Context<'_> {
    /// Adds the next FPDU to the batch.
    pub(in crate::verbs) fn add_fpdu(&mut self, batch: &mut Batch) -> Step {
        loop {
            let added = if self.qp.response.is_some() {
                self.response_segment(batch)
            } else if self.qp.sq.sending().is_some() {
                self.work_segment(batch)
            } else if self.qp.terminate_out.is_some() {
                self.terminate_segment(batch)
            } else if self.qp.state != QpState::Rts {
                return Step::Nothing;
            } else if let Err(step) = self.begin(batch) {
                return step;
            } else {
                false
            };
            if added {
                return Step::Added;
            }
        }
    }

    /// Begins the next response or Work Request. If nothing can begin, the error is the [`Step`]
    /// that [`add_fpdu`](Self::add_fpdu) returns.
    fn begin(&mut self, batch: &Batch) -> Result<(), Step> {
        let ready = self.qp.sq.ready(self.qp.ord).is_some();
        if !self.qp.irrq.is_empty() && (self.qp.response_turn || !ready) {
            return self.begin_response(batch);
        }
        reject_if(!ready, Step::Nothing)?;
        self.qp.response_turn = true;
        self.begin_work(batch)
    }

    /// Begins the next Work Request.
    fn begin_work(&mut self, batch: &Batch) -> Result<(), Step> {
        let (ord, version, max_message) = (self.qp.ord, self.qp.version, self.shared.settings.max_message);
        let accessor = self.qp.accessor();
        let wqe = self.qp.sq.ready(ord).ok_or(Step::Nothing)?;
        let memory = &mut self.shared.memory;
        let control = |opcode| Control::new(opcode, version);
        let message = match &wqe.wr.operation {
            Operation::Bind(_) | Operation::FastRegister(_) | Operation::InvalidateLocal(_) if !batch.is_empty() => {
                // The operation would change memory to which the batch refers.
                return Err(Step::Flush);
            }
            Operation::Bind(bind) => Err(memory.bind(accessor, bind).map_err(CompletionStatus::from)),
            Operation::FastRegister(_) if !self.qp.privileged => Err(Err(CompletionStatus::NotPrivileged)),
            Operation::FastRegister(new) => Err(memory.fast_register(accessor.pd, new).map_err(CompletionStatus::from)),
            Operation::InvalidateLocal(stag) => {
                let invalidated = memory.invalidate(accessor, InvalidateBy::Local, stag.to_bits());
                Err(invalidated.map_err(CompletionStatus::from))
            }
            Operation::Send { payload, .. } | Operation::Write { payload, .. }
                if payload.length() > u64::from(max_message) =>
            {
                Err(Err(CompletionStatus::InvalidLength))
            }
            Operation::Read { local, .. } if local.length > max_message => Err(Err(CompletionStatus::InvalidLength)),
            // STag 0 is allowed only for the source of Sends and Writes, and for receives
            // (VERBS-8.1.3.2.1-2).
            Operation::Write { payload, remote } if payload.length() > 0 && remote.stag == STAG_ZERO => {
                Err(Err(CompletionStatus::InvalidStag))
            }
            Operation::Read { local, remote, .. }
                if local.length > 0 && (local.stag == STAG_ZERO || remote.stag == STAG_ZERO) =>
            {
                Err(Err(CompletionStatus::InvalidStag))
            }
            Operation::Send { payload, solicited, invalidate } => {
                let opcode = match (solicited, invalidate) {
                    (false, None) => Opcode::SEND,
                    (false, Some(_)) => Opcode::SEND_INVALIDATE,
                    (true, None) => Opcode::SEND_SE,
                    (true, Some(_)) => Opcode::SEND_SE_INVALIDATE,
                };
                let word = invalidate.unwrap_or(0);
                Ok(untagged(queue::SEND, &mut self.qp.send_msn, word, control(opcode), payload.length()))
            }
            Operation::Immediate { solicited, .. } => {
                let opcode = if *solicited { Opcode::IMMEDIATE_SE } else { Opcode::IMMEDIATE };
                Ok(untagged(queue::SEND, &mut self.qp.send_msn, 0, control(opcode), 8))
            }
            Operation::Write { payload, remote } => {
                let to = Destination::Tagged { stag: remote.stag, tagged_offset: remote.tagged_offset };
                Ok(Segmenter::new(to, control(Opcode::WRITE), octets(payload.length())))
            }
            Operation::Read { .. } | Operation::Atomic { .. } if ord == 0 => {
                Err(Err(CompletionStatus::ZeroReadResources))
            }
            Operation::Read { .. } => {
                let (control, length) = (control(Opcode::READ_REQUEST), RawReadRequest::LEN as u64);
                Ok(untagged(queue::READ_REQUEST, &mut self.qp.request_msn, 0, control, length))
            }
            Operation::Atomic { .. } => {
                let (control, length) = (control(Opcode::ATOMIC_REQUEST), RawAtomicRequest::LEN as u64);
                Ok(untagged(queue::READ_REQUEST, &mut self.qp.request_msn, 0, control, length))
            }
        };
        match message {
            Ok(message) => self.qp.sq.begin(Progress::Sending(message)),
            Err(Ok(())) => self.qp.sq.finish(CompletionStatus::Success),
            Err(Err(status)) => self.work_error(status, FailedWork::Send),
        }
        self.drain();
        self.check_local_error();
        Ok(())
    }

    /// Adds a segment of the Work Request that is being sent.
    fn work_segment(&mut self, batch: &mut Batch) -> bool {
        let (accessor, mulpdu) = (self.qp.accessor(), self.qp.mulpdu);
        let request_id = self.qp.next_request_id;
        let Some(wqe) = self.qp.sq.sending() else { return false };
        let Progress::Sending(message) = &mut wqe.progress else { return false };
        let first = message.done() == 0;
        let Some(segment) = message.next_segment(mulpdu) else { return false };
        let finished = message.is_finished();
        let mut waits = false;
        let mut small = Vec::new();
        let range = segment.payload.clone();
        let payload = match &wqe.wr.operation {
            Operation::Send { payload, .. } | Operation::Write { payload, .. } => payload,
            Operation::Immediate { data, .. } => {
                data.emit(&mut small);
                &Payload::Gather(Vec::new())
            }
            Operation::Read { local, remote, .. } => {
                waits = true;
                let request = ReadRequest {
                    sink_stag: local.stag,
                    sink_to: local.tagged_offset,
                    rdmardsz: local.length,
                    src_stag: remote.stag,
                    src_to: remote.tagged_offset,
                };
                request.emit(&mut small);
                &Payload::Gather(Vec::new())
            }
            Operation::Atomic { remote, operation } => {
                waits = true;
                let request = AtomicRequest {
                    request_identifier: request_id,
                    remote_stag: remote.stag,
                    remote_tagged_offset: remote.tagged_offset,
                    operation: *operation,
                };
                request.emit(&mut small);
                &Payload::Gather(Vec::new())
            }
            Operation::Bind(_) | Operation::FastRegister(_) | Operation::InvalidateLocal(_) => return false,
        };
        let ranges = &mut batch.ranges;
        ranges.clear();
        let found = match payload {
            Payload::Inline(octets) => {
                let part = octets.slice(range.start as usize..range.end as usize);
                self.push(batch, &segment.header, &PayloadSource::Octets(&part));
                return self.sent(finished, waits);
            }
            Payload::Gather(sges) => {
                let memory = &self.shared.memory;
                // Check the memory of the complete message before sending its first byte.
                let checked = if first { 0..octets(length(sges)) } else { 0..0 };
                walk(memory, accessor, sges, checked, Right::LocalRead, |_| {})
                    .and_then(|()| walk(memory, accessor, sges, range, Right::LocalRead, |at| ranges.push(at)))
            }
        };
        let unreadable = found.is_err() && hostile::hook::conduct(&self.shared.deviations).sends_unreadable;
        if unreadable {
            small = vec![0; segment.payload.len()];
        } else if let Err(error) = found {
            self.work_error(error.into(), FailedWork::Send);
            self.drain();
            return false;
        }
        if small.is_empty() {
            self.push(batch, &segment.header, &PayloadSource::Ranges);
        } else {
            self.push(batch, &segment.header, &PayloadSource::Octets(&small));
        }
        self.sent(finished, waits)
    }

    fn sent(&mut self, finished: bool, waits: bool) -> bool {
        if finished && waits {
            self.qp.sq.wait();
            self.qp.next_request_id = self.qp.next_request_id.wrapping_add(1);
            let is_atomic = |wqe: &mut Wqe| matches!(wqe.wr.operation, Operation::Atomic { .. });
            if hostile::hook::conduct(&self.shared.deviations).completes_atomics_early
                && self.qp.sq.waiting().is_some_and(is_atomic)
            {
                self.qp.sq.answer(CompletionStatus::Success, Some(0));
                self.drain();
            }
        } else if finished {
            self.qp.sq.finish(CompletionStatus::Success);
            self.drain();
            self.check_local_error();
        }
        true
    }

    /// Begins the response to the oldest request.
    fn begin_response(&mut self, batch: &Batch) -> Result<(), Step> {
        let of = self.qp.irrq.front().copied().ok_or(Step::Nothing)?;
        let version = self.qp.version;
        match of.request {
            Request::Read(request) => {
                let to = Destination::Tagged { stag: request.sink_stag, tagged_offset: request.sink_to };
                let message = Segmenter::new(to, Control::new(Opcode::READ_RESPONSE, version), request.rdmardsz);
                self.qp.response = Some(Response { message, of, octets: Bytes::new() });
            }
            // The operation would change memory to which the batch refers.
            Request::Atomic(_) if !batch.is_empty() => return Err(Step::Flush),
            Request::Atomic(request) => match self.atomic(&request) {
                Ok(value) => {
                    let original_request_identifier = request.request_identifier;
                    let response = AtomicResponse { original_request_identifier, original_remote_data_value: value };
                    let mut octets = Vec::new();
                    response.emit(&mut octets);
                    let (control, length) = (Control::new(Opcode::ATOMIC_RESPONSE, version), octets.len() as u64);
                    let message = untagged(queue::ATOMIC_RESPONSE, &mut self.qp.atomic_msn, 0, control, length);
                    self.qp.response = Some(Response { message, of, octets: octets.into() });
                }
                Err(fault) => {
                    self.response_error(of, fault, 0);
                    return Ok(());
                }
            },
        }
        self.qp.irrq.pop_front();
        self.qp.response_turn = false;
        Ok(())
    }

    fn atomic(&mut self, request: &AtomicRequest) -> Result<u64, Fault> {
        let (stag, to) = (request.remote_stag, request.remote_tagged_offset);
        let memory = &mut self.shared.memory;
        memory.locate(self.qp.accessor(), stag, to, 8, Right::RemoteRead).map_err(Fault::Source)?;
        let range = memory.locate(self.qp.accessor(), stag, to, 8, Right::RemoteWrite).map_err(Fault::Source)?;
        let mut operation = request.operation;
        hostile::hook::atomic(&self.shared.deviations, &mut operation);
        if !hostile::hook::conduct(&self.shared.deviations).knows_words_by_stream {
            return memory.atomic(range, operation).map_err(|_| Fault::Misaligned);
        }
        if let Some((_, octets)) = self.qp.word.take_if(|(at, _)| *at == (stag, to)) {
            memory.put(range, &octets);
        }
        let found = memory.atomic(range, operation).map_err(|_| Fault::Misaligned);
        let mut now = Vec::new();
        memory.copy_to(range, &mut now);
        self.qp.word = Some(((stag, to), now));
        found
    }

    fn response_segment(&mut self, batch: &mut Batch) -> bool {
        let mulpdu = self.qp.mulpdu;
        let accessor = self.qp.accessor();
        let Some(response) = &mut self.qp.response else { return false };
        let of = response.of;
        let Some(segment) = response.message.next_segment(mulpdu) else {
            self.qp.response = None;
            return false;
        };
        let octets = response.octets.clone();
        if response.message.is_finished() {
            self.qp.response = None;
        }
        batch.ranges.clear();
        if let Request::Read(request) = of.request {
            let (start, len) = (segment.payload.start, segment.payload.len());
            let to = request.src_to.wrapping_add(u64::from(start));
            match self.shared.memory.locate(accessor, request.src_stag, to, len, Right::RemoteRead) {
                Ok(range) => batch.ranges.push(range),
                Err(error) => {
                    self.qp.response = None;
                    self.response_error(of, Fault::Source(error), start);
                    return false;
                }
            }
            self.push(batch, &segment.header, &PayloadSource::Ranges);
        } else {
            self.push(batch, &segment.header, &PayloadSource::Octets(&octets));
        }
        true
    }

    /// Reports that the endpoint cannot finish the response to a request that was valid when it
    /// arrived. `done` bytes of the response were already sent.
    fn response_error(&mut self, of: InboundRequest, fault: Fault, done: u32) {
        let read_request = match of.request {
            // The Terminate contains a Read Request for the part of the Read that was not sent (RFC
            // 5040 section 4.8).
            Request::Read(request) => Some(ReadRequest {
                sink_to: request.sink_to.wrapping_add(u64::from(done)),
                rdmardsz: request.rdmardsz - done,
                src_to: request.src_to.wrapping_add(u64::from(done)),
                ..request
            }),
            Request::Atomic(_) => None,
        };
        let payload = if read_request.is_some() { RawReadRequest::LEN } else { 52 };
        let segment_length = u16::try_from(RawUntagged::LEN + payload).unwrap_or(u16::MAX);
        self.segment_error(&SegmentError { fault, header: of.header, segment_length, read_request });
    }

    fn terminate_segment(&mut self, batch: &mut Batch) -> bool {
        let Some(payload) = self.qp.terminate_out.take() else { return false };
        let control = Control::new(Opcode::TERMINATE, self.qp.version);
        let mut message = untagged(queue::TERMINATE, &mut { Msn::FIRST }, 0, control, payload.len() as u64);
        let Some(segment) = message.next_segment(self.qp.mulpdu) else { return false };
        self.push(batch, &segment.header, &PayloadSource::Octets(&payload));
        true
    }

    fn push(&mut self, batch: &mut Batch, header: &RawHeader, payload: &PayloadSource<'_>) {
        let Some(llp) = &mut self.llp else { return };
        llp.push(&self.shared.memory, batch, header.as_octets(), payload);
    }
}

/// Creates an untagged message with the next MSN of its queue, and counts this MSN.
fn untagged(qn: u32, msn: &mut Msn, word: u32, control: Control, length: u64) -> Segmenter {
    let destination = Destination::Untagged { qn, msn: *msn, word };
    *msn = msn.next();
    Segmenter::new(destination, control, octets(length))
}

/// Converts a length to `u32`. The length was checked when the Work Request was posted.
fn octets(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
