//! A stream of the lower layer protocol (LLP): the result of MPA start-up, the received bytes that
//! are not processed yet, and the bytes to send.
//!
//! The program that opened the connection passes the stream to the RNIC. It does so by a function
//! that is not a verb ("a non-verbs interface", draft-hilland-rddp-verbs section 13.1). From then
//! on, the stream accepts received bytes. Later, the program calls the verb Modify QP to change a
//! Queue Pair to the state RTS. This verb also connects the stream with the Queue Pair. Bytes that
//! arrive before this change are stored, and processed as FPDUs after the change (VERBS-13.1-6).

use std::collections::VecDeque;

use bytes::Bytes;

use super::batch::{Batch, PayloadSource};
use super::llp_settings::LlpSettings;
use super::slab::Key;
use crate::hostile::{self, Conduct, Deviations};
use crate::memory::Memory;
use crate::mpa::{ArrivedRtr, Deframer, FpduSender, Rtr, is_read_response, read_response};
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Llp {
    pub(super) settings: LlpSettings,
    /// Builds the FPDUs of a stream with [deviations](crate::hostile). `None` for a stream without
    /// deviations.
    hostile: Option<FpduSender>,
    /// Deviations in the processing of FPDUs.
    pub(super) conduct: Conduct,
    pub(super) qp: Option<Key>,
    /// `None` only while segments are processed.
    pub(super) deframer: Option<Deframer>,
    /// Bytes that arrived before RTS.
    pub(super) early: Vec<u8>,
    /// The ULPDU that waits for a receive to be posted (draft section 13.2). The bytes after this
    /// ULPDU are in `held`.
    pub(super) waiting: Option<Vec<u8>>,
    pub(super) held: Vec<u8>,
    /// Bytes to send in streaming mode.
    pub(super) raw: VecDeque<Bytes>,
    /// Bytes that TCP did not accept when their FPDUs were built. Since then, TCP has accepted the
    /// first `backlog_sent` of these bytes.
    pub(super) backlog: Vec<u8>,
    pub(super) backlog_sent: usize,
    /// Number of bytes of all FPDUs that have been built.
    pub(super) position: u64,
    pub(super) may_send: bool,
    /// ULPDUs of start-up, which are sent before the messages of the Queue Pair.
    pub(super) ahead: VecDeque<Vec<u8>>,
    /// True after the first ULPDU has arrived.
    has_received: bool,
    /// This endpoint sent a ready-to-receive message of kind Read, and the Read Response has not
    /// arrived yet.
    awaits_read_response: bool,
    pub(super) fin: Fin,
    pub(super) peer_fin: bool,
    pub(super) reset: bool,
    pub(super) over: bool,
    pub(super) deadline: Option<Instant>,
}

/// Purpose of a received ULPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceivedUlpdu {
    /// A message for the Queue Pair.
    Message,
    /// Start-up: a ready-to-receive message of this kind. The Queue Pair counts this message and
    /// does nothing else with it.
    Ready(Rtr),
    /// Start-up: the Read Response to a ready-to-receive message. The Queue Pair ignores this
    /// response.
    Answer,
}

/// State of this endpoint's direction of the TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fin {
    Open,
    /// FIN will be sent after all queued bytes.
    Wanted,
    Sent,
}

impl Llp {
    pub(super) fn new(mut settings: LlpSettings, deviations: &Deviations) -> Self {
        let framings = (&mut settings.framing_sent, &mut settings.framing_received);
        hostile::hook::framing(deviations, framings.0, framings.1);
        let conduct = hostile::hook::conduct(deviations);
        let early = conduct.sends_early;
        let sender = || FpduSender::deviating(settings.framing_sent, deviations.clone());
        Llp {
            settings,
            hostile: (!deviations.is_empty()).then(sender),
            conduct,
            qp: None,
            deframer: Some(Deframer::deviating(settings.framing_received, deviations.clone())),
            early: Vec::new(),
            waiting: None,
            held: Vec::new(),
            raw: VecDeque::new(),
            backlog: Vec::new(),
            backlog_sent: 0,
            position: 0,
            may_send: settings.speaks_first || early,
            ahead: (early && !settings.speaks_first).then(|| Rtr::Write.ulpdu(settings.version)).into_iter().collect(),
            has_received: false,
            awaits_read_response: false,
            fin: Fin::Open,
            peer_fin: false,
            reset: false,
            over: false,
            deadline: None,
        }
    }

    /// Adds the FPDU of one DDP segment to the batch.
    pub(super) fn push(&mut self, memory: &Memory, batch: &mut Batch, header: &[u8], payload: &PayloadSource<'_>) {
        match &mut self.hostile {
            None => self.position = batch.push(memory, self.settings.framing_sent, self.position, header, payload),
            Some(sender) => {
                let ulpdu = batch.ulpdu(memory, header, payload);
                // A segment has at most MULPDU bytes, which always fit into an FPDU.
                batch.push_octets(&sender.fpdu(&[&ulpdu]).unwrap_or_default());
            }
        }
    }

    /// Returns whether a Queue Pair can use the stream.
    pub(super) fn is_usable(&self) -> bool {
        self.qp.is_none() && self.fin == Fin::Open && !self.peer_fin && !self.reset && !self.over
    }

    /// Queues the ready-to-receive message when the Queue Pair enters RTS. Returns the kind of the
    /// message, because the Queue Pair has to count the message.
    pub(super) fn send_ready(&mut self) -> Option<Rtr> {
        if !self.settings.speaks_first {
            return None;
        }
        let kind = Rtr::ALL.into_iter().find(|kind| self.settings.rtr.contains(*kind))?;
        self.ahead.push_back(kind.ulpdu(self.settings.version));
        self.awaits_read_response = kind == Rtr::Read;
        Some(kind)
    }

    /// Determines whether a received ULPDU is for the Queue Pair or belongs to start-up.
    pub(super) fn classify(&mut self, ulpdu: &[u8]) -> ReceivedUlpdu {
        let first = !std::mem::replace(&mut self.has_received, true);
        self.may_send = true;
        let version = self.settings.version;
        if first && self.conduct.drops_first_fpdu && !self.settings.speaks_first {
            return ReceivedUlpdu::Answer;
        }
        if self.settings.speaks_first {
            if self.awaits_read_response && is_read_response(ulpdu, version) {
                self.awaits_read_response = false;
                return ReceivedUlpdu::Answer;
            }
            return ReceivedUlpdu::Message;
        }
        match ArrivedRtr::of(ulpdu, version).filter(|_| first) {
            // Answer the Read even if no ready-to-receive message was agreed, because some
            // Initiators of revision 1 send a Read without such an agreement.
            Some(ArrivedRtr::Read { sink_stag, sink_to }) => {
                self.ahead.push_back(read_response(version, sink_stag, sink_to));
                ReceivedUlpdu::Ready(Rtr::Read)
            }
            // This Send only reports that the peer is ready. It is not passed to the ULP, so it
            // uses no receive (RFC 6581 section 4.4.2).
            Some(ArrivedRtr::Send) if self.settings.rtr.send => ReceivedUlpdu::Ready(Rtr::Send),
            // A Write of 0 bytes needs no special treatment.
            Some(ArrivedRtr::Send | ArrivedRtr::Write) | None => ReceivedUlpdu::Message,
        }
    }

    /// Resets the stream. All queued bytes are dropped, and nothing is sent after the reset.
    pub(super) fn want_reset(&mut self) {
        if !self.over {
            self.reset = true;
        }
        self.raw.clear();
        self.backlog.clear();
        self.backlog_sent = 0;
        self.deadline = None;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.peer_fin && self.fin == Fin::Sent
    }
}

/// What the driver has to do next. [`Rnic::poll_transmit`](super::Rnic::poll_transmit) returns this
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransmitResult {
    /// There is nothing to send at present.
    Nothing,
    /// TCP accepted this number of bytes. Call `poll_transmit` again.
    Octets(usize),
    /// Send FIN: close this endpoint's direction gracefully.
    Fin,
    /// Abort the connection. Nothing is sent after the abort.
    Reset,
}
