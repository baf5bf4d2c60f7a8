//! This side's own SinkAvails (sections 9.3, 9.5.1, 9.5.5, 11.3 of the SDP draft).

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode};

use super::super::{Output, ReceiveId, ReceiveOutcome, Violation};
use super::Sink;
use crate::reject::reject_if;

/// State of a revocation of this side's SinkAvails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) enum Revoke {
    /// No revocation.
    #[default]
    No,
    /// SinkAvailCancel is to be sent.
    Wanted,
    /// SinkAvailCancel is sent. This side may send a SinkAvail again when the revocation is
    /// complete.
    Sent,
}

impl Sink {
    /// Number of receives that SinkAvails advertise.
    pub(in super::super) fn adverts(&self) -> usize {
        self.receives.iter().take_while(|receive| receive.advertised.is_some()).count()
    }

    pub(super) fn has_adverts(&self) -> bool {
        self.receives.front().is_some_and(|receive| receive.advertised.is_some())
    }

    /// Returns whether a SinkAvail advertises a receive of at most this many bytes.
    pub(in super::super) fn advertises_up_to(&self, octets: u32) -> bool {
        let mut advertised = self.receives.iter().take_while(|receive| receive.advertised.is_some());
        advertised.any(|receive| receive.advertised_len() <= octets)
    }

    /// Returns the receive that a SinkAvail could advertise now, and its length in bytes. The
    /// receive must be longer than `least` bytes. All receives that were posted before this receive
    /// must be advertised, because the bytes that the peer writes must keep their order in the
    /// stream.
    pub(in super::super) fn advertisable(&self, least: u64) -> Option<(ReceiveId, u32)> {
        let possible = self.mode == Mode::Pipelined
            && self.revoke == Revoke::No
            && !self.ended
            && self.buffered.iter().all(|buffered| buffered.len == 0)
            // While a SrcAvail is open, this side sends no SinkAvail (section 11.3, rule 2a).
            && self.sources.is_empty()
            && self.reading.is_none()
            && self.owed == 0;
        let next = self.receives.get(self.adverts()).filter(|_| possible)?;
        // A receive with MSG_WAITALL is never advertised (section 9.3).
        let suits = !next.wait_all && !next.canceled && next.filled == 0 && next.len > least;
        suits.then(|| (next.receive, next.advertised_len()))
    }

    /// Notes that the SinkAvail for the next receive was sent.
    pub(in super::super) fn advertised(&mut self, stag: u32) {
        let at = self.adverts();
        if let Some(receive) = self.receives.get_mut(at) {
            receive.advertised = Some(stag);
        }
    }

    /// Processes an RdmaWrCompl for `len` bytes: the oldest SinkAvail is Processed. If the message
    /// invalidated an STag, `invalidated` is this STag.
    pub(in super::super) fn write_completed(
        &mut self,
        len: u32,
        invalidated: Option<u32>,
        out: &mut VecDeque<Output>,
    ) -> Result<(), Violation> {
        let mid = Mid::RDMA_WR_COMPL;
        let front = self.receives.front_mut().ok_or(Violation::Unmatched(mid))?;
        let expected = front.advertised.ok_or(Violation::Unmatched(mid))?;
        let left = front.advertised_len();
        reject_if(len == 0 || len > left, Violation::Length { mid, found: len, left })?;
        if let Some(found) = invalidated.filter(|found| *found != expected) {
            return Err(Violation::Invalidated { mid, found, expected });
        }
        front.filled = u64::from(len);
        front.advertised = None;
        let end = if front.canceled { ReceiveOutcome::Canceled } else { ReceiveOutcome::More };
        out.push_back(Output::Withdraw { stag: expected });
        self.end_front(false, end, out);
        self.settle_revocation();
        Ok(())
    }

    /// Withdraws all SinkAvails, because they are void.
    pub(in super::super) fn void(&mut self, out: &mut VecDeque<Output>) {
        for receive in &mut self.receives {
            out.extend(receive.advertised.take().map(|stag| Output::Withdraw { stag }));
        }
        self.settle_revocation();
    }

    pub(super) fn revoke_advertised(&mut self) {
        if self.has_adverts() && self.revoke == Revoke::No {
            self.revoke = Revoke::Wanted;
        }
    }

    /// Processes a SinkCancelAck. If an RdmaWrCompl has already completed the revocation, no
    /// SinkAvail is left, and nothing is dropped.
    pub(in super::super) fn sink_cancel_ack(&mut self, out: &mut VecDeque<Output>) -> Result<(), Violation> {
        reject_if(!self.has_revoked, Violation::Unmatched(Mid::SINK_CANCEL_ACK))?;
        if self.revoke == Revoke::Sent {
            self.void(out);
        }
        Ok(())
    }

    /// Notes that the SinkAvailCancel was sent.
    pub(in super::super) fn revoked(&mut self) {
        self.revoke = Revoke::Sent;
        self.has_revoked = true;
    }

    /// Ends a revocation as soon as no SinkAvail is open.
    pub(super) fn settle_revocation(&mut self) {
        if !self.has_adverts() {
            self.revoke = Revoke::No;
        }
    }
}
