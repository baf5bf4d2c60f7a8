//! The peer's SinkAvails at the Data Source (sections 9.3, 9.5.1, 9.5.5, 11.3, 12.4).

use std::collections::VecDeque;

use weft_core::wire::sdp::{Mid, Mode, SinkAvail};

use super::super::credits::reached;
use super::super::{OpId, Output, Violation};
use super::Source;

/// A SinkAvail that is there to be used.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct OpenSinkAvail {
    pub(in super::super) stag: u32,
    pub(in super::super) va: u64,
    pub(in super::super) len: u32,
    non_discards: u32,
}

/// A SinkAvail that is being written to.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Writing {
    pub(in super::super) op: OpId,
    pub(in super::super) stag: u32,
    pub(in super::super) start: u64,
    pub(in super::super) len: u32,
    pub(in super::super) written: bool,
}

impl Source {
    /// A SinkAvail arrives. `most`: those that this side offered to keep.
    pub(in super::super) fn sink_avail(
        &mut self,
        advert: &SinkAvail,
        most: u16,
        out: &mut VecDeque<Output>,
    ) -> Result<(), Violation> {
        if let Some((change, known)) = &mut self.left_pipelined {
            // It crossed the ModeChange: it is dropped, but counted as if it had come before (C12).
            // Fresh, it means that the peer dropped the SrcAvails that it met (C39).
            if advert.non_discards == *known {
                let change = *change;
                self.void(|own| !reached(own.mseq, change), out);
            } else {
                *known = known.wrapping_sub(1);
                self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
            }
            return Ok(());
        }
        if self.mode != Mode::Pipelined {
            return Err(Violation::Mode { mid: Mid::SINK_AVAIL, mode: self.mode });
        }
        if self.usable.len() + self.writing.len() >= usize::from(most) {
            return Err(Violation::TooManyAdverts(most));
        }
        let SinkAvail { len, stag, va, non_discards } = *advert;
        self.usable.push_back(OpenSinkAvail { stag, va, len, non_discards });
        self.drop_stale();
        if !self.usable.is_empty() {
            // Write Zcopy goes before Read Zcopy (section 11.3, rule 1).
            self.void(|_| true, out);
        }
        Ok(())
    }

    /// Section 9.5.1, step 4.
    pub(super) fn drop_stale(&mut self) {
        if self.conduct.trusts_sink_avails {
            return;
        }
        while self.usable.front().is_some_and(|oldest| oldest.non_discards != self.potential_non_discards) {
            self.usable.pop_front();
            self.potential_non_discards = self.potential_non_discards.wrapping_sub(1);
        }
    }

    /// The oldest SinkAvail that can be used.
    pub(super) fn usable(&self) -> Option<&OpenSinkAvail> {
        self.usable.front()
    }

    /// It is being written to from now on: `len` octets from `start` on.
    pub(in super::super) fn begin_write(&mut self, op: OpId, start: u64, len: u32) {
        if let Some(OpenSinkAvail { stag, .. }) = self.usable.pop_front() {
            self.writing.push_back(Writing { op, stag, start, len, written: false });
            self.next = start + u64::from(len);
        }
    }

    /// A write is through. Gives the oldest ones that are: each wants its RdmaWrCompl.
    pub(in super::super) fn written(&mut self, op: OpId) -> Vec<Writing> {
        if let Some(writing) = self.writing.iter_mut().find(|writing| writing.op == op) {
            writing.written = true;
        }
        let through = self.writing.iter().take_while(|writing| writing.written).count();
        self.writing.drain(..through).collect()
    }

    /// SinkAvailCancel: drops the buffers that are not being written to. Returns whether there were
    /// any (section 9.5.5).
    pub(in super::super) fn sink_avail_cancel(&mut self) -> bool {
        let any = !self.usable.is_empty();
        self.usable.clear();
        any
    }

    /// Leaves Pipelined Mode by a ModeChange of this MSeq. SinkAvails that are stale lower
    /// PotentialNonDiscards, the others are void (C12).
    pub(in super::super) fn leave_pipelined(&mut self, mseq: u32) {
        self.usable.clear();
        self.left_pipelined = Some((mseq, self.potential_non_discards));
    }

    /// The peer has seen everything up to here.
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
    use weft_core::coverage::{By, Proof};
    use weft_core::requirement;

    #[test]
    fn potential_non_discards_rolls_over() {
        let mut proof = Proof::new(By::Test);
        let mut source = Source::new();
        (source.mode, source.potential_non_discards) = (Mode::Pipelined, u32::MAX);
        source.post(SendId(1), 10, false);
        source.took(0, 5);
        let mut offers = |non_discards| {
            let advert = SinkAvail { len: 100, stag: 1, va: 0, non_discards };
            source.sink_avail(&advert, 4, &mut VecDeque::new()).unwrap();
            (source.usable.len(), source.potential_non_discards)
        };
        let (stale, fresh) = (offers(u32::MAX), offers(u32::MAX));
        proof.shows(requirement!("SDP-9.5.1-10"), || assert_eq!((stale, fresh), ((0, u32::MAX), (1, u32::MAX))));
    }
}
