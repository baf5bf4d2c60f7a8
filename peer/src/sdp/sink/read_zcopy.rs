//! The peer's SrcAvails at the Data Sink (sections 9.2, 9.5.2.1, 9.5.4, 11.3 of the SDP draft).

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode, SrcAvail};

use super::super::{OpId, Output, Policy, SrcAvailAnswer, Violation};
use super::Sink;
use crate::reject::reject_if;
use crate::verbs::RemoteAddress;

/// A SrcAvail of the peer that is not Processed.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct RemoteSource {
    stag: u32,
    /// Tagged Offset of the first byte that this side has not read.
    va: u64,
    left: u32,
    /// Number of bytes that this side has read and not reported with an RdmaRdCompl.
    unreported: u32,
    /// This side has started at least one Read.
    touched: bool,
}

impl RemoteSource {
    /// Number of bytes that this side has not read.
    pub(super) fn left(&self) -> u64 {
        self.left.into()
    }
}

/// A Read in progress, from the oldest SrcAvail into the oldest receive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    op: OpId,
    len: u32,
}

/// An answer that the Data Sink sends for a SrcAvail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Answer {
    /// RdmaRdCompl for `len` bytes. If the message completes its SrcAvail, `last` is the STag to
    /// invalidate.
    RdmaRdCompl { len: u32, last: Option<u32> },
    /// SendSm.
    SendSm,
    /// End of a SrcAvailCancel: a SendSm if a SrcAvail was open, otherwise no message.
    Canceled { send_sm: bool },
}

impl Sink {
    /// Processes a SrcAvail that arrived. The message of the SrcAvail carried the first `payload`
    /// bytes. `most` is MaxAdverts of this side.
    pub(in super::super) fn src_avail(&mut self, advert: &SrcAvail, payload: u32, most: u16) -> Result<(), Violation> {
        let mid = Mid::SRC_AVAIL;
        match self.mode {
            Mode::Buffered => return Err(Violation::Mode { mid, mode: self.mode }),
            Mode::Combined if payload == 0 => return Err(Violation::Mode { mid, mode: self.mode }),
            Mode::Pipelined if payload > 0 => return Err(Violation::Mode { mid, mode: self.mode }),
            Mode::Combined | Mode::Pipelined => {}
        }
        if self.has_adverts() && !self.conduct.reads_crossing {
            // The SrcAvail crossed a SinkAvail, so both sides drop all SrcAvails (section 11.3,
            // rule 2b).
            self.sources.clear();
            return Ok(());
        }
        reject_if(self.sources.len() >= usize::from(most), Violation::TooManyAdverts(most))?;
        let va = advert.va.wrapping_add(u64::from(payload));
        let left = advert.len - payload;
        self.sources.push_back(RemoteSource { stag: advert.stag, va, left, unreported: 0, touched: false });
        Ok(())
    }

    /// Continues with the oldest SrcAvail: starts a Read or returns answers to send.
    pub(in super::super) fn read_on(
        &mut self,
        policy: &Policy,
        mut next_op: impl FnMut() -> OpId,
        out: &mut VecDeque<Output>,
    ) -> Vec<Answer> {
        let mut answers = Vec::new();
        if self.reading.is_some() {
            return answers;
        }
        if self.src_cancel {
            self.src_cancel = false;
            let rest = self.sources.front().copied();
            if let Some(oldest) = rest.filter(|oldest| oldest.unreported > 0) {
                answers.push(Answer::RdmaRdCompl { len: oldest.unreported, last: None });
            }
            self.sources.clear();
            answers.push(Answer::Canceled { send_sm: rest.is_some() });
            return answers;
        }
        // Data that a SendSm requested precedes everything else (section 9.2).
        if self.halted || self.owed > 0 || !self.buffered.iter().all(|buffered| buffered.len == 0) {
            return answers;
        }
        // A SrcAvail whose bytes all arrived as payload needs no Read.
        while let Some(oldest) = self.sources.pop_front_if(|oldest| oldest.left == 0) {
            answers.push(Answer::RdmaRdCompl { len: 0, last: Some(oldest.stag) });
        }
        let Some(oldest) = self.sources.front_mut() else { return answers };
        let Some(front) = self.receives.front().filter(|front| front.advertised.is_none() && !front.canceled) else {
            return answers;
        };
        let by_data = match policy.answer {
            SrcAvailAnswer::Read => self.conduct.never_reads,
            SrcAvailAnswer::SendSm => true,
            SrcAvailAnswer::ReadThenSendSm => oldest.touched,
        };
        if by_data {
            answers.extend(self.request_data());
            return answers;
        }
        let room = u32::try_from(front.len - front.filled).unwrap_or(u32::MAX);
        let len = room.min(oldest.left).min(policy.max_read.max(1));
        oldest.touched = true;
        let op = next_op();
        let remote = RemoteAddress { stag: oldest.stag, tagged_offset: oldest.va };
        self.reading = Some(Reading { op, len });
        out.push_back(Output::Read { op, remote, receive: front.receive, at: front.filled, len });
        answers
    }

    /// Requests the rest of the oldest SrcAvail as Data. Returns the SendSm for this request. If
    /// bytes were read and not reported, an RdmaRdCompl precedes the SendSm.
    pub(in super::super) fn request_data(&mut self) -> Vec<Answer> {
        let Some(oldest) = self.sources.pop_front() else { return Vec::new() };
        self.owed += u64::from(oldest.left);
        let report = (oldest.unreported > 0).then_some(Answer::RdmaRdCompl { len: oldest.unreported, last: None });
        report.into_iter().chain([Answer::SendSm]).collect()
    }

    /// If bytes of the oldest SrcAvail were read and not reported, returns an RdmaRdCompl for these
    /// bytes.
    pub(in super::super) fn report_rest(&mut self) -> Vec<Answer> {
        let unreported = self.sources.front_mut().map(|oldest| std::mem::take(&mut oldest.unreported));
        unreported.filter(|len| *len > 0).map(|len| Answer::RdmaRdCompl { len, last: None }).into_iter().collect()
    }

    /// Notes that a Read is complete. If an RdmaRdCompl is due, returns the RdmaRdCompl.
    pub(in super::super) fn read_completed(
        &mut self,
        op: OpId,
        policy: &Policy,
        out: &mut VecDeque<Output>,
    ) -> Option<Answer> {
        let Reading { len, .. } = self.reading.take_if(|reading| reading.op == op)?;
        let oldest = self.sources.front_mut()?;
        oldest.va = oldest.va.wrapping_add(u64::from(len));
        oldest.left -= len;
        oldest.unreported += len;
        let (unreported, left, stag) = (oldest.unreported, oldest.left, oldest.stag);
        let front = self.receives.front_mut()?;
        front.filled += u64::from(len);
        let full = front.filled == front.len;
        let answer = (left == 0 || full || unreported >= policy.read_batch).then(|| {
            oldest.unreported = 0;
            Answer::RdmaRdCompl { len: unreported, last: (left == 0).then_some(stag) }
        });
        if left == 0 {
            self.sources.pop_front();
        }
        if full {
            self.end_front(false, super::ReceiveOutcome::More, out);
        }
        answer
    }

    /// Processes a SrcAvailCancel. Returns whether this side must answer it (section 9.5.4).
    pub(in super::super) fn src_avail_cancel(&mut self) -> bool {
        self.src_cancel = !self.sources.is_empty();
        self.src_cancel
    }

    /// Returns whether the peer waits for a Read of its SrcAvail while no receive is posted.
    pub(in super::super) fn is_peer_waiting(&self) -> bool {
        !self.sources.is_empty() && self.receives.is_empty() && self.owed == 0
    }
}
