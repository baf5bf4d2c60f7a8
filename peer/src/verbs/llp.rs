//! The lower layer protocol's stream as the RNIC has it: the result of MPA start-up, and what is
//! still to be sent.
//!
//! A stream is made by the connection's owner ("a non-verbs interface", draft section 13.1), takes
//! what arrives from then on, and is joined with a Queue Pair by Modify QP to RTS. Octets that
//! arrive before that are kept as iWARP's (VERBS-13.1-6).

use std::collections::VecDeque;

use bytes::Bytes;

use super::batch::{Batch, PayloadOf};
use super::llp_settings::LlpSettings;
use super::slab::Key;
use crate::hostile::{self, Conduct, Deviations};
use crate::memory::Memory;
use crate::mpa::{ArrivedRtr, Deframer, FpduSender, Rtr, is_read_response, read_response};
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Llp {
    pub(super) settings: LlpSettings,
    /// Makes the FPDUs of a stream with deviations.
    hostile: Option<FpduSender>,
    /// Misdeeds in what is done with FPDUs.
    pub(super) conduct: Conduct,
    pub(super) qp: Option<Key>,
    /// Out of its place while segments are handled.
    pub(super) deframer: Option<Deframer>,
    /// Octets that arrived before RTS.
    pub(super) early: Vec<u8>,
    /// What waits for a receive (draft section 13.2): the ULPDU that needs it, and all octets after
    /// it.
    pub(super) waiting: Option<Vec<u8>>,
    pub(super) held: Vec<u8>,
    /// Streaming-mode octets to send.
    pub(super) raw: VecDeque<Bytes>,
    /// Octets of FPDUs that were made and not taken; the first `backlog_sent` of them were.
    pub(super) backlog: Vec<u8>,
    pub(super) backlog_sent: usize,
    /// Octets of FPDUs that were made.
    pub(super) position: u64,
    pub(super) may_send: bool,
    /// ULPDUs that go in front of the Queue Pair's: what start-up has to send.
    pub(super) ahead: VecDeque<Vec<u8>>,
    /// A ULPDU arrived.
    has_received: bool,
    /// The Read Response to the ready-to-receive message has not come.
    awaits_read_response: bool,
    pub(super) fin: Fin,
    pub(super) peer_fin: bool,
    pub(super) reset: bool,
    pub(super) over: bool,
    pub(super) deadline: Option<Instant>,
}

/// What a ULPDU is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceivedUlpdu {
    /// The Queue Pair.
    Message,
    /// Start-up: a ready-to-receive message of this kind.
    Ready(Rtr),
    /// Start-up: the answer to one.
    Answer,
}

/// The state of this side's half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fin {
    Open,
    /// Goes out after everything that is queued.
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
    pub(super) fn push(&mut self, memory: &Memory, batch: &mut Batch, header: &[u8], payload: &PayloadOf<'_>) {
        match &mut self.hostile {
            None => self.position = batch.push(memory, self.settings.framing_sent, self.position, header, payload),
            Some(sender) => {
                let ulpdu = batch.ulpdu(memory, header, payload);
                // A segment has at most MULPDU octets, which an FPDU always carries.
                batch.push_octets(&sender.fpdu(&[&ulpdu]).unwrap_or_default());
            }
        }
    }

    /// A Queue Pair can be put on it.
    pub(super) fn is_usable(&self) -> bool {
        self.qp.is_none() && self.fin == Fin::Open && !self.peer_fin && !self.reset && !self.over
    }

    /// The Queue Pair is in RTS: the ready-to-receive message is sent. Gives its kind, since its
    /// queue counts it.
    pub(super) fn send_ready(&mut self) -> Option<Rtr> {
        if !self.settings.speaks_first {
            return None;
        }
        let kind = Rtr::ALL.into_iter().find(|kind| self.settings.rtr.contains(*kind))?;
        self.ahead.push_back(kind.ulpdu(self.settings.version));
        self.awaits_read_response = kind == Rtr::Read;
        Some(kind)
    }

    /// A ULPDU arrived: is it start-up's, and not for the Queue Pair?
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
            // Also where none was agreed: some Initiators of revision 1 begin with it.
            Some(ArrivedRtr::Read { sink_stag, sink_to }) => {
                self.ahead.push_back(read_response(version, sink_stag, sink_to));
                ReceivedUlpdu::Ready(Rtr::Read)
            }
            // Its ULP knows nothing of it, so it uses none of its receives (RFC 6581 section
            // 4.4.2).
            Some(ArrivedRtr::Send) if self.settings.rtr.send => ReceivedUlpdu::Ready(Rtr::Send),
            // A Write of no octets is one like any other.
            Some(ArrivedRtr::Send | ArrivedRtr::Write) | None => ReceivedUlpdu::Message,
        }
    }

    /// The reset goes out before anything else; nothing follows.
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

/// A command to a driver for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Nothing, until something happens.
    Nothing,
    /// This many octets were taken; ask again.
    Octets(usize),
    /// Close the sending half gracefully.
    Fin,
    /// Abort the connection; nothing follows.
    Reset,
}
