//! What an end did that nothing explains so far.
//!
//! The directions of a capture may be out of step, so that what explains it comes later. What is left when the connection ends is
//! for rules to judge. Memory: the first [`MOST`] of each kind.

use super::credits::reached;
use crate::unit::Located;

const MOST: usize = 16;

/// An RDMA Write or a Read Request to an STag that no open advertisement of the peer had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StrayRdma {
    /// Where the STag is.
    pub place: Located,
    /// The STag of the peer's buffer.
    pub stag: u32,
    /// A Write?
    pub write: bool,
}

/// A message that takes credit back: its MSeqAck + Bufs is less than that of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepBack {
    /// Where its BSDH is.
    pub header: Located,
    /// Its MSeqAck.
    pub mseq_ack: u32,
    /// The highest MSeqAck + Bufs before it.
    pub from: u32,
    /// Its own.
    pub to: u32,
}

/// A message that acknowledges what the peer did not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// Where its MSeqAck is.
    pub octets: Located,
    /// Its MSeqAck.
    pub mseq_ack: u32,
    /// The last MSeq of the peer; `None` where there was only its Hello or HelloAck.
    pub sent: Option<u32>,
}

/// The strays of one end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strays {
    /// To STags that nobody had advertised.
    pub rdma: Vec<StrayRdma>,
    /// Messages that take credit back.
    pub steps_back: Vec<StepBack>,
    /// The first message that acknowledges what was not sent.
    pub ahead: Option<Ahead>,
}

impl Strays {
    pub(super) fn rdma(&mut self, stray: StrayRdma) {
        if self.rdma.len() < MOST {
            self.rdma.push(stray);
        }
    }

    pub(super) fn step_back(&mut self, step: StepBack) {
        if self.steps_back.len() < MOST {
            self.steps_back.push(step);
        }
    }

    /// The peer advertises a buffer: of a SinkAvail, for Writes.
    pub(super) fn advertised(&mut self, stag: u32, for_writes: bool) {
        self.rdma.retain(|stray| stray.stag != stag || stray.write != for_writes);
    }

    /// The peer sends a SrcAvailCancel, from which on its receiver holds MSeqAck back (section 9.5.4, reading C19).
    pub(super) fn canceled(&mut self, mseq: u32) {
        self.steps_back.retain(|step| step.mseq_ack.wrapping_add(1) != mseq);
    }

    /// The first message of the peer has MSeq 0: its buffer is gone, and MSeqAck stays 0 (reading C4).
    pub(super) fn counts_from_zero(&mut self) {
        self.steps_back.retain(|step| step.from.wrapping_sub(step.to) != 1);
    }

    /// The peer sends a message.
    pub(super) fn sent(&mut self, mseq: u32) {
        self.ahead = self.ahead.filter(|ahead| !reached(mseq, ahead.mseq_ack));
    }
}
