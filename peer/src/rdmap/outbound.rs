//! Outbound direction of a connection. Cuts the posted Sends, in order, into segments of at most
//! MULPDU. At most one Terminate follows the Sends (RFC 5040 sections 5.3, 5.4, 7.1).
//!
//! FPDUs are built one at a time, when the driver can send them. Therefore no payload is buffered
//! twice.

use std::collections::VecDeque;

use bytes::Bytes;
use weft_core::wire::ddp::{Msn, queue};
use weft_core::wire::mpa::mulpdu::MIN_MULPDU;
use weft_core::wire::rdmap::{Control, Opcode, Terminate};

use super::StreamError;
use crate::ddp::{Destination, Segmenter};
use crate::hostile::{self, Deviations};
use crate::mpa::{FpduSender, Negotiated, SetupError};

/// Identifies a posted Send. The numbers count up from 0 on each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SendId(pub u64);

/// The Data Source of one stream.
#[derive(Debug)]
pub struct Outbound {
    fpdus: FpduSender,
    mulpdu: u16,
    /// Version of DDP and RDMAP that MPA negotiated.
    version: u8,
    /// ULPDUs that start-up has to send before the next message.
    ahead: VecDeque<Vec<u8>>,
    posted: VecDeque<(SendId, Bytes)>,
    /// The message that is being sent.
    current: Option<Current>,
    next_id: u64,
    /// Number of payload bytes of all incomplete Sends.
    octets: usize,
    /// MSN of the next Send.
    next_msn: Msn,
    terminate: Option<Terminate>,
}

#[derive(Debug)]
struct Current {
    /// The Send, or `None` for the Terminate.
    id: Option<SendId>,
    payload: Bytes,
    message: Segmenter,
}

/// One FPDU, and the Send that is complete when the FPDU is sent.
pub(crate) struct Fpdu {
    pub(crate) octets: Vec<u8>,
    pub(crate) completes: Option<SendId>,
}

impl Outbound {
    /// Creates a Data Source. Its ULPDUs have at most `mulpdu` bytes. `version` is the version of
    /// DDP and RDMAP.
    #[must_use]
    pub fn new(fpdus: FpduSender, mulpdu: u16, version: u8) -> Self {
        let (posted, ahead) = (VecDeque::new(), VecDeque::new());
        let (next_id, octets, next_msn) = (0, 0, Msn::FIRST);
        Outbound { fpdus, mulpdu, version, ahead, posted, current: None, next_id, octets, next_msn, terminate: None }
    }

    /// Returns the FPDU with the Terminate of an Initiator that cannot continue after a Reply.
    pub fn setup_terminate(negotiated: &Negotiated, error: SetupError, deviations: Deviations) -> Vec<u8> {
        let mut terminate = StreamError::Setup(error).terminate();
        hostile::hook::terminate(&deviations, &mut terminate);
        let sender = FpduSender::deviating(negotiated.framing_sent(), deviations);
        let mut outbound = Outbound::new(sender, MIN_MULPDU, negotiated.version);
        outbound.terminate(terminate);
        outbound.next_fpdu().map(|fpdu| fpdu.octets).unwrap_or_default()
    }

    /// Queues a ULPDU of start-up, which is sent before the next message.
    pub fn send_ahead(&mut self, ulpdu: Vec<u8>) {
        self.ahead.push_back(ulpdu);
    }

    /// Counts a ready-to-receive message of kind Send, which has MSN 1. The next Send has MSN 2.
    pub fn skip_send(&mut self) {
        self.next_msn = self.next_msn.next();
    }

    /// Posts a Send.
    pub fn post_send(&mut self, payload: Bytes) -> SendId {
        let id = SendId(self.next_id);
        self.next_id += 1;
        self.octets += payload.len();
        self.posted.push_back((id, payload));
        id
    }

    /// Number of incomplete Sends.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.posted.len() + usize::from(self.current.as_ref().is_some_and(|current| current.id.is_some()))
    }

    /// Number of payload bytes of all incomplete Sends.
    #[must_use]
    pub fn outstanding_octets(&self) -> usize {
        self.octets
    }

    /// Makes `terminate` the last message (RDMAP-5.4-12). Drops the Sends that have not begun. The
    /// message in progress is finished before the Terminate is sent (RDMAP-7.1-7).
    pub fn terminate(&mut self, terminate: Terminate) {
        self.drop_posted();
        self.terminate = Some(terminate);
    }

    /// Drops the Sends that have not begun.
    pub fn drop_posted(&mut self) {
        self.octets -= self.posted.drain(..).map(|(_, payload)| payload.len()).sum::<usize>();
    }

    /// Drops the rest of the Send in progress.
    pub(crate) fn drop_begun(&mut self) {
        if let Some(Current { id: Some(_), payload, .. }) = self.current.take() {
            self.octets -= payload.len();
        }
    }

    /// Returns the next FPDU, or `None` if nothing has to be sent.
    pub(crate) fn next_fpdu(&mut self) -> Option<Fpdu> {
        if self.current.is_none() {
            if let Some(ulpdu) = self.ahead.pop_front() {
                return Some(Fpdu { octets: self.fpdus.fpdu(&[&ulpdu]).ok()?, completes: None });
            }
            self.current = self.next_message();
        }
        let Current { id, payload, message } = self.current.as_mut()?;
        let segment = message.next_segment(self.mulpdu)?;
        let part = payload.slice(segment.payload.start as usize..segment.payload.end as usize);
        let mut completes = None;
        if message.is_finished() {
            completes = *id;
            if id.is_some() {
                self.octets -= payload.len();
            }
            self.current = None;
        }
        // A segment has at most MULPDU bytes, which always fit into an FPDU.
        let octets = self.fpdus.fpdu(&[segment.header.as_octets(), &part]).ok()?;
        Some(Fpdu { octets, completes })
    }

    fn next_message(&mut self) -> Option<Current> {
        if let Some((id, payload)) = self.posted.pop_front() {
            let message = self.message(queue::SEND, self.next_msn, Opcode::SEND, &payload);
            self.next_msn = self.next_msn.next();
            return Some(Current { id: Some(id), payload, message });
        }
        let terminate = self.terminate.take()?;
        let mut payload = Vec::new();
        terminate.emit(&mut payload);
        let payload = Bytes::from(payload);
        let message = self.message(queue::TERMINATE, Msn::FIRST, Opcode::TERMINATE, &payload);
        Some(Current { id: None, payload, message })
    }

    /// Returns the segmenter of a message to queue `qn`. The caller ensures that the message has at
    /// most 2^32 - 1 bytes (DDP-5.2-2).
    fn message(&self, qn: u32, msn: Msn, opcode: Opcode, payload: &Bytes) -> Segmenter {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let destination = Destination::Untagged { qn, msn, word: 0 };
        Segmenter::new(destination, Control::new(opcode, self.version), length)
    }
}
