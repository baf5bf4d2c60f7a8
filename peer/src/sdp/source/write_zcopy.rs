//! The peer's SinkAvails at the Data Source (sections 9.3, 9.5.1, 9.5.5, 11.3, 12.4 of the SDP
//! draft).

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode, SinkAvail};

use super::super::credits::reached;
use super::super::{OpId, Output, Violation};
use super::Source;
use crate::reject::reject_if;

/// A SinkAvail of the peer that this side can still use.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct OpenSinkAvail {
    pub(in super::super) stag: u32,
    pub(in super::super) va: u64,
    pub(in super::super) len: u32,
    non_discards: u32,
}

/// A SinkAvail that this side is writing to.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Writing {
    pub(in super::super) op: OpId,
    pub(in super::super) stag: u32,
    pub(in super::super) start: u64,
    pub(in super::super) len: u32,
    pub(in super::super) written: bool,
}

impl Source {
    /// Processes a SinkAvail that arrived. `most` is MaxAdverts of this side.
    pub(in super::super) fn sink_avail(
        &mut self,
        advert: &SinkAvail,
        most: u16,
        out: &mut VecDeque<Output>,
    ) -> Result<(), Violation> {
        if let Some((change, known)) = &mut self.left_pipelined {
            // The SinkAvail crossed the ModeChange. This side drops the SinkAvail, but counts it in
            // the same way as a SinkAvail before the ModeChange. If the SinkAvail is not stale, the
            // peer has dropped the SrcAvails that crossed the SinkAvail.
            if advert.non_discards == *known {
                let change = *change;
                self.void(|own| !reached(own.mseq, change), out);
            } else {
                *known = known.wrapping_sub(1);
                self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
            }
            return Ok(());
        }
        reject_if(self.mode != Mode::Pipelined, Violation::Mode { mid: Mid::SINK_AVAIL, mode: self.mode })?;
        reject_if(self.usable.len() + self.writing.len() >= usize::from(most), Violation::TooManyAdverts(most))?;
        let SinkAvail { len, stag, va, non_discards } = *advert;
        self.usable.push_back(OpenSinkAvail { stag, va, len, non_discards });
        self.drop_stale();
        if !self.usable.is_empty() {
            // Write Zcopy takes precedence over Read Zcopy (section 11.3, rule 1).
            self.void(|_| true, out);
        }
        Ok(())
    }

    /// Drops stale SinkAvails (section 9.5.1, step 4).
    pub(super) fn drop_stale(&mut self) {
        if self.conduct.trusts_sink_avails {
            return;
        }
        while self.usable.front().is_some_and(|oldest| oldest.non_discards != self.potential_non_discards) {
            self.usable.pop_front();
            self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
        }
    }

    /// Returns the oldest SinkAvail that can be used.
    pub(super) fn usable(&self) -> Option<&OpenSinkAvail> {
        self.usable.front()
    }

    /// Starts a write of `len` bytes from position `start` into the oldest usable SinkAvail.
    pub(in super::super) fn begin_write(&mut self, op: OpId, start: u64, len: u32) {
        if let Some(OpenSinkAvail { stag, .. }) = self.usable.pop_front() {
            self.writing.push_back(Writing { op, stag, start, len, written: false });
            self.next = start + u64::from(len);
        }
    }

    /// Notes that a write is complete. Returns the complete writes that precede the oldest
    /// incomplete write. Each of these writes needs an RdmaWrCompl.
    pub(in super::super) fn written(&mut self, op: OpId) -> Vec<Writing> {
        if let Some(writing) = self.writing.iter_mut().find(|writing| writing.op == op) {
            writing.written = true;
        }
        let through = self.writing.iter().take_while(|writing| writing.written).count();
        self.writing.drain(..through).collect()
    }

    /// Processes a SinkAvailCancel: drops the SinkAvails that this side is not writing to. Returns
    /// whether a SinkAvail was dropped (section 9.5.5).
    pub(in super::super) fn sink_avail_cancel(&mut self) -> bool {
        let any = !self.usable.is_empty();
        self.usable.clear();
        any
    }

    /// Leaves Pipelined Mode with a ModeChange whose MSeq is `mseq`. All usable SinkAvails are
    /// void. A stale SinkAvail that arrives after this ModeChange still lowers
    /// PotentialNonDiscards.
    pub(in super::super) fn leave_pipelined(&mut self, mseq: u32) {
        self.usable.clear();
        self.left_pipelined = Some((mseq, self.potential_non_discards));
    }

    /// Notes that the peer has received all messages up to `mseq_ack`.
    pub(in super::super) fn acknowledged(&mut self, mseq_ack: u32) {
        if self.left_pipelined.is_some_and(|(mseq, _)| reached(mseq_ack, mseq)) {
            self.left_pipelined = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::SendId;
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    #[test]
    fn potential_non_discards_rolls_over() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut source = Source::default();
        (source.mode, source.potential_non_discards) = (Mode::Pipelined, u32::MAX);
        source.post(SendId(1), 10, false);
        source.assign(0, 5);
        let mut offers = |non_discards| {
            let advert = SinkAvail { len: 100, stag: 1, va: 0, non_discards };
            source.sink_avail(&advert, 4, &mut VecDeque::new()).unwrap();
            (source.usable.len(), source.potential_non_discards)
        };
        let (stale, fresh) = (offers(u32::MAX), offers(u32::MAX));
        proof.verify(requirement!("SDP-9.5.1-10"), || assert_eq!((stale, fresh), ((0, u32::MAX), (1, u32::MAX))));
    }
}
