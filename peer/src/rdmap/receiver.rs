//! The Data Sink of one stream: checks, places and delivers each DDP segment (RFC 5040 section 7.2,
//! RFC 5041 section 7.1, RFC 7306 section 8.2).
//!
//! The RFCs do not define the order of all checks. This receiver first checks, in this order, the
//! DDP version, the RDMAP version, whether the opcode is known, and the queue number. Then it
//! checks MSN, MO and buffer, and whether the opcode belongs to the queue. If this endpoint does
//! not support RFC 7306, the opcodes of RFC 7306 are unknown opcodes. The error for such an opcode
//! is therefore "Unexpected OpCode" (RDMAP-7306.1.1-1), even if the queue number is also unknown.
//!
//! A message of another queue, or of another tagged opcode, may come between the segments of a
//! message. RFC 5041 section 5.3 defines the order of messages, and the order of the segments of
//! one message. But this section does not require that the segments of a message are contiguous.
//!
//! Memory, receive queues and requests belong to the [`DataSink`]. A receiver stores only the
//! expected MSN and MO of each queue.

use weft_core::wire::ddp::{RawHeader, RawTagged, RawUntagged, queue};
use weft_core::wire::rdmap::{AtomicOpcode, AtomicRequest, AtomicResponse, Immediate, Opcode, RawAtomicRequest};
use weft_core::wire::rdmap::{ReadRequest, Terminate};
use zerocopy::FromBytes;

use super::{DataSink, Fault, Received, SegmentError};
use crate::ddp::{QueueError, UntaggedQueue};
use crate::hostile::{self, DeviationState, Deviations};
use crate::reject::reject_if;

/// The receiver of the DDP segments of one stream.
#[derive(Debug)]
pub struct Receiver {
    /// Version of DDP and RDMAP that MPA negotiated.
    version: u8,
    /// True if this endpoint supports RFC 7306: Atomic Operations and Immediate Data.
    extensions: bool,
    sends: UntaggedQueue,
    requests: UntaggedQueue,
    atomics: UntaggedQueue,
    /// STag of a Write whose last segment has not arrived.
    write: Option<u32>,
    /// STag of a Read Response whose last segment has not arrived.
    response: Option<u32>,
    /// For a deviation: where the next segment of the current Send is placed.
    appended: u32,
    deviations: Deviations,
    deviation_state: DeviationState,
}

impl Receiver {
    /// Creates a receiver. `version` is the version of DDP and RDMAP. `extensions` turns on RFC
    /// 7306.
    #[must_use]
    pub fn new(version: u8, extensions: bool) -> Self {
        Receiver::deviating(version, extensions, Deviations::NONE)
    }

    /// Creates a receiver with deliberate protocol violations (`deviations`).
    #[must_use]
    pub fn deviating(version: u8, extensions: bool, deviations: Deviations) -> Self {
        Receiver {
            version,
            extensions,
            sends: UntaggedQueue::default(),
            requests: UntaggedQueue::default(),
            atomics: UntaggedQueue::default(),
            write: None,
            response: None,
            appended: 0,
            deviations,
            deviation_state: DeviationState::default(),
        }
    }

    /// Counts a ready-to-receive message of kind Send, which uses no buffer. The next Send has MSN
    /// 2.
    pub fn skip_send(&mut self) {
        self.sends.skip();
    }

    /// Counts a ready-to-receive message of kind Read, which start-up answers. The next request has
    /// MSN 2.
    pub fn skip_request(&mut self) {
        self.requests.skip();
    }

    /// Returns whether a message has begun and its last segment has not arrived.
    #[must_use]
    pub fn is_mid_message(&self) -> bool {
        self.sends.is_open() || self.write.is_some() || self.response.is_some()
    }

    /// Processes one ULPDU, which is one DDP segment.
    ///
    /// # Errors
    /// The segment is rejected. The stream has to end with a Terminate.
    pub fn handle_segment(&mut self, ulpdu: &[u8], sink: &mut impl DataSink) -> Result<(), SegmentError> {
        if self.deviations.is_empty() { self.check(ulpdu, sink) } else { self.check_deviating(ulpdu, sink) }
    }

    fn check(&mut self, ulpdu: &[u8], sink: &mut impl DataSink) -> Result<(), SegmentError> {
        let split = RawHeader::from_prefix(ulpdu).ok_or(Fault::SegmentSize);
        let delivered = split.and_then(|(header, payload)| self.deliver(&header, payload, sink));
        delivered.map_err(|fault| SegmentError::of(fault, ulpdu))
    }

    /// Does the same as `check`, but applies the deviations.
    fn check_deviating(&mut self, ulpdu: &[u8], sink: &mut impl DataSink) -> Result<(), SegmentError> {
        let arrived = hostile::hook::segment_arrived(&self.deviations, &mut self.deviation_state, ulpdu);
        let judged = match arrived {
            Ok(Some(lost)) if lost.is_empty() => Ok(()),
            Ok(Some(changed)) => self.check(&changed, sink),
            Ok(None) => self.check(ulpdu, sink),
            Err(fault) => Err(SegmentError::of(fault, ulpdu)),
        };
        let Err(error) = judged else { return Ok(()) };
        reject_if(!hostile::hook::overlooks(&self.deviations, &mut self.deviation_state, error.fault), error)?;
        if let Some(RawHeader::Untagged(header)) = &error.header {
            match header.qn.get() {
                queue::SEND => self.sends.skip_to(header),
                queue::READ_REQUEST => self.requests.skip_to(header),
                queue::ATOMIC_RESPONSE => self.atomics.skip_to(header),
                _ => {}
            }
        }
        Ok(())
    }

    fn deliver(&mut self, header: &RawHeader, payload: &[u8], sink: &mut impl DataSink) -> Result<(), Fault> {
        let tagged = matches!(header, RawHeader::Tagged(_));
        reject_if(header.control().version() != self.version, Fault::DdpVersion { tagged })?;
        reject_if(header.ulp_control().version() != self.version, Fault::RdmapVersion)?;
        let greatest = if self.extensions { Opcode::ATOMIC_RESPONSE } else { Opcode::TERMINATE };
        reject_if(header.ulp_control().opcode() > greatest, Fault::Opcode)?;
        match header {
            RawHeader::Tagged(header) => self.tagged(header, payload, sink),
            RawHeader::Untagged(header) => match header.qn.get() {
                queue::SEND => self.send(header, payload, sink),
                queue::READ_REQUEST => self.request(header, payload, sink),
                queue::TERMINATE => terminate(header, payload).map(|terminate| sink.terminate(terminate)),
                queue::ATOMIC_RESPONSE if self.extensions => self.atomic_response(header, payload, sink),
                _ => Err(Fault::QueueNumber),
            },
        }
    }

    fn tagged(&mut self, header: &RawTagged, payload: &[u8], sink: &mut impl DataSink) -> Result<(), Fault> {
        let opcode = header.ulp_control.opcode();
        let (stag, to, last) = (header.stag.get(), header.tagged_offset.get(), header.control.last());
        let open = match opcode {
            Opcode::WRITE => &mut self.write,
            Opcode::READ_RESPONSE => &mut self.response,
            _ => return Err(Fault::Opcode),
        };
        reject_if(open.is_some_and(|open| open != stag), Fault::MissingLast)?;
        match opcode {
            Opcode::READ_RESPONSE => sink.read_response(stag, to, payload, last)?,
            _ if payload.is_empty() => {}
            _ => sink.write(stag, to, payload)?,
        }
        *open = (!last).then_some(stag);
        Ok(())
    }

    fn send(&mut self, header: &RawUntagged, payload: &[u8], sink: &mut impl DataSink) -> Result<(), Fault> {
        let opcode = header.ulp_control.opcode();
        let immediate = matches!(opcode, Opcode::IMMEDIATE | Opcode::IMMEDIATE_SE);
        reject_if(!opcode.is_send() && !immediate, Fault::Opcode)?;
        let of_queue = |error| Fault::of_queue(queue::SEND, error);
        let conduct = hostile::hook::conduct(&self.deviations);
        match self.sends.check_msn(header) {
            Err(QueueError::MissingLast) if conduct.abandons_incomplete => self.sends.begin(header.msn()),
            checked => checked.map_err(of_queue)?,
        }
        let buffer = sink.receive_buffer()?;
        if immediate {
            let data = Immediate::parse(payload).map_err(|_| Fault::ImmediateSize)?;
            self.sends.check_offset(header, 0, 0).map_err(of_queue)?;
            reject_if(!header.control.last(), Fault::MissingLast)?;
            self.sends.advance(header, 0);
            let solicited = opcode == Opcode::IMMEDIATE_SE;
            return sink.received(Received { length: 0, solicited, invalidate: None, immediate: Some(data) });
        }
        match self.sends.check_offset(header, payload.len(), buffer) {
            Err(QueueError::MessageOffset) if conduct.delivers_gaps && header.control.last() => {}
            checked => checked.map_err(of_queue)?,
        }
        let offset = if conduct.appends_segments { self.appended } else { header.mo.get() };
        self.appended =
            if header.control.last() { 0 } else { offset.wrapping_add(u32::try_from(payload.len()).unwrap_or(0)) };
        sink.receive(offset, payload)?;
        if let Some(length) = self.sends.advance(header, payload.len()) {
            let solicited = matches!(opcode, Opcode::SEND_SE | Opcode::SEND_SE_INVALIDATE);
            let invalidate = opcode.invalidates().then(|| header.ulp_word.get());
            sink.received(Received { length, solicited, invalidate, immediate: None })?;
        }
        Ok(())
    }

    /// Processes a Read Request or an Atomic Request, which always has one segment of fixed length.
    fn request(&mut self, header: &RawUntagged, payload: &[u8], sink: &mut impl DataSink) -> Result<(), Fault> {
        let opcode = header.ulp_control.opcode();
        reject_if(opcode != Opcode::READ_REQUEST && opcode != Opcode::ATOMIC_REQUEST, Fault::Opcode)?;
        sink.request_buffer()?;
        single(&mut self.requests, queue::READ_REQUEST, header)?;
        if opcode == Opcode::READ_REQUEST {
            return sink.read_request(ReadRequest::parse(payload).map_err(|_| Fault::RequestSize)?);
        }
        let raw = RawAtomicRequest::read_from_bytes(payload).map_err(|_| Fault::RequestSize)?;
        reject_if(!matches!(raw.opcode(), AtomicOpcode::FETCH_ADD | AtomicOpcode::CMP_SWAP), Fault::AtomicOpcode)?;
        sink.atomic_request(AtomicRequest::parse(payload).map_err(|_| Fault::RequestSize)?)
    }

    fn atomic_response(&mut self, header: &RawUntagged, payload: &[u8], sink: &mut impl DataSink) -> Result<(), Fault> {
        reject_if(header.ulp_control.opcode() != Opcode::ATOMIC_RESPONSE, Fault::Opcode)?;
        single(&mut self.atomics, queue::ATOMIC_RESPONSE, header)?;
        sink.atomic_response(AtomicResponse::parse(payload).map_err(|_| Fault::AtomicResponse)?)
    }
}

/// Checks that the segment is the next message of `queue` and that the message has only this
/// segment.
fn single(queue: &mut UntaggedQueue, qn: u32, header: &RawUntagged) -> Result<(), Fault> {
    queue.check_msn(header).map_err(|error| Fault::of_queue(qn, error))?;
    queue.check_offset(header, 0, 0).map_err(|error| Fault::of_queue(qn, error))?;
    reject_if(!header.control.last(), Fault::MissingLast)?;
    queue.advance(header, 0);
    Ok(())
}

/// Checks and parses a segment of the Terminate queue. This queue has one buffer, for one message
/// of one segment (RDMAP-5.4-2, RDMAP-5.4-3).
fn terminate(header: &RawUntagged, payload: &[u8]) -> Result<Terminate, Fault> {
    let of_queue = |error| Fault::of_queue(queue::TERMINATE, error);
    let queue = UntaggedQueue::default();
    queue.check_msn(header).map_err(of_queue)?;
    queue.check_offset(header, 0, 0).map_err(of_queue)?;
    reject_if(!header.control.last(), of_queue(QueueError::TooLong))?;
    reject_if(header.ulp_control.opcode() != Opcode::TERMINATE, Fault::Opcode)?;
    Terminate::parse(payload).map_err(|_| Fault::Terminate)
}

#[cfg(test)]
mod tests;
