//! This side's own SrcAvails (sections 9.2, 9.5.2.1, 9.5.4, 11.3 of the SDP draft).

use std::collections::VecDeque;

use weft_core::wire::sdp::Mid;

use super::super::credits::reached;
use super::super::{Output, Violation};
use super::Source;
use crate::reject::reject_if;

/// A SrcAvail that is not Processed.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct OpenSrcAvail {
    pub(in super::super) mseq: u32,
    /// Position of the first byte that the peer has not read.
    pub(in super::super) start: u64,
    /// Number of bytes that the peer has not read.
    pub(in super::super) left: u32,
    pub(in super::super) stag: u32,
}

impl Source {
    /// Notes that a SrcAvail for `len` bytes from position `start` was sent. The message itself
    /// carried the first `payload` bytes.
    pub(in super::super) fn advertised(&mut self, mseq: u32, start: u64, len: u32, payload: u32, stag: u32) {
        let unread = start + u64::from(payload);
        if payload > 0 {
            self.assign(start, u64::from(payload));
        }
        self.open.push_back(OpenSrcAvail { mseq, start: unread, left: len - payload, stag });
        self.next = start + u64::from(len);
    }

    /// Processes an RdmaRdCompl for `len` bytes. If the message invalidated an STag, `invalidated`
    /// is this STag.
    pub(in super::super) fn read_completed(
        &mut self,
        len: u32,
        invalidated: Option<u32>,
        out: &mut VecDeque<Output>,
    ) -> Result<(), Violation> {
        let mid = Mid::RDMA_RD_COMPL;
        let oldest = self.open.front_mut().ok_or(Violation::Unmatched(mid))?;
        // Len 0 is allowed if the SrcAvail carried all of its data as payload (SDP-6.3.7.1-3).
        if len > oldest.left || len == 0 && oldest.left > 0 {
            return Err(Violation::Length { mid, found: len, left: oldest.left });
        }
        let (expected, is_complete) = (oldest.stag, len == oldest.left);
        oldest.left -= len;
        oldest.start += u64::from(len);
        // An RdmaRdCompl for a part of the data can also invalidate the STag, because a SendSm for
        // the rest of the data can follow (section 9.2).
        if let Some(found) = invalidated.filter(|found| *found != expected) {
            return Err(Violation::Invalidated { mid, found, expected });
        }
        if is_complete {
            self.open.pop_front();
            out.push_back(Output::Withdraw { stag: expected });
        }
        Ok(())
    }

    /// Processes a SendSm, which ends the oldest advertisement. If the SendSm does not answer a
    /// SrcAvailCancel, the rest of the advertised bytes is sent as Data.
    pub(in super::super) fn send_sm(&mut self, mseq_ack: u32, out: &mut VecDeque<Output>) -> Result<(), Violation> {
        reject_if(self.open.is_empty(), Violation::Unmatched(Mid::SEND_SM))?;
        if self.cancel.and_then(|cancel| cancel.mseq).is_some_and(|mseq| reached(mseq_ack, mseq)) {
            self.void(|_| true, out);
        } else if let Some(oldest) = self.open.pop_front() {
            out.push_back(Output::Withdraw { stag: oldest.stag });
            self.owed.push_back((oldest.start, u64::from(oldest.left)));
        }
        Ok(())
    }

    /// Removes the SrcAvails that `which` selects, because the peer has dropped them or will drop
    /// them. Their bytes become unassigned.
    pub(in super::super) fn void(&mut self, which: impl Fn(&OpenSrcAvail) -> bool, out: &mut VecDeque<Output>) {
        // Either all open SrcAvails are selected or none. In Combined Mode, a SrcAvail is sent only
        // when no older SrcAvail is open. Therefore SrcAvails from before and after a ModeChange to
        // Combined Mode are never open at the same time. So `next` can move back to the first
        // selected SrcAvail.
        let first = self.open.iter().find(|advert| which(advert)).map(|advert| advert.start);
        self.open.retain(|advert| {
            let void = which(advert);
            if void {
                out.push_back(Output::Withdraw { stag: advert.stag });
            }
            !void
        });
        if let Some(start) = first {
            self.next = start;
        }
    }
}
