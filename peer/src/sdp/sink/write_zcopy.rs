//! SinkAvails as their owner sees them (sections 9.3, 9.5.1, 9.5.5, 11.3).

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode};

use super::super::{Output, ReceiveEnd, ReceiveId, Violation};
use super::Sink;

/// A revocation of SinkAvails by their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Revoke {
    /// None.
    No,
    /// SinkAvailCancel is to be sent.
    Wanted,
    /// It is sent; no new SinkAvail until it is settled.
    Sent,
}

impl Sink {
    /// Receives that are advertised.
    pub(in super::super) fn adverts(&self) -> usize {
        self.receives.iter().take_while(|receive| receive.advertised.is_some()).count()
    }

    pub(super) fn has_adverts(&self) -> bool {
        self.receives.front().is_some_and(|receive| receive.advertised.is_some())
    }

    /// A receive of at most this many octets is advertised.
    pub(in super::super) fn advertises_up_to(&self, octets: u32) -> bool {
        let mut advertised = self.receives.iter().take_while(|receive| receive.advertised.is_some());
        advertised.any(|receive| receive.advertised_len() <= octets)
    }

    /// SrcAvails that are not Processed.
    pub(in super::super) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// The receive that a SinkAvail could advertise now. `least`: it has to be larger than this
    /// many octets. Those in front of it are advertised all, so that octets that the peer writes
    /// come to their place in the stream.
    pub(in super::super) fn advertisable(&self, least: u64) -> Option<(ReceiveId, u32)> {
        let possible = self.mode == Mode::Pipelined
            && self.revoke == Revoke::No
            && !self.ended
            && self.held.iter().all(|held| held.len == 0)
            // Section 11.3, rule 2a.
            && self.sources.is_empty()
            && self.is_still();
        let next = self.receives.get(self.adverts()).filter(|_| possible)?;
        // With MSG_WAITALL a receive is never advertised (section 9.3).
        let suits = !next.wait_all && !next.canceled && next.filled == 0 && next.len > least;
        suits.then(|| (next.receive, next.advertised_len()))
    }

    /// Its SinkAvail is sent.
    pub(in super::super) fn advertised(&mut self, stag: u32) {
        let at = self.adverts();
        if let Some(receive) = self.receives.get_mut(at) {
            receive.advertised = Some(stag);
        }
    }

    /// RdmaWrCompl, which perhaps invalidated an STag: the oldest SinkAvail is Processed (C16).
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
        if len == 0 || len > left {
            return Err(Violation::Length { mid, found: len, left });
        }
        if let Some(found) = invalidated.filter(|found| *found != expected) {
            return Err(Violation::Invalidated { mid, found, expected });
        }
        front.filled = u64::from(len);
        front.advertised = None;
        let end = if front.canceled { ReceiveEnd::Canceled } else { ReceiveEnd::More };
        out.push_back(Output::Withdraw { stag: expected });
        self.end_front(false, end, out);
        self.settle_revocation();
        Ok(())
    }

    /// All SinkAvails are void.
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

    /// SinkCancelAck. It may come for a revocation that a RdmaWrCompl settled: then nothing is left
    /// to be dropped.
    pub(in super::super) fn sink_cancel_ack(&mut self, out: &mut VecDeque<Output>) -> Result<(), Violation> {
        if !self.has_revoked {
            return Err(Violation::Unmatched(Mid::SINK_CANCEL_ACK));
        }
        if self.revoke == Revoke::Sent {
            self.void(out);
        }
        Ok(())
    }

    /// SinkAvailCancel is sent.
    pub(in super::super) fn revoked(&mut self) {
        self.revoke = Revoke::Sent;
        self.has_revoked = true;
    }

    /// A revocation is over when nothing is advertised any more (C17).
    pub(super) fn settle_revocation(&mut self) {
        if !self.has_adverts() {
            self.revoke = Revoke::No;
        }
    }
}
