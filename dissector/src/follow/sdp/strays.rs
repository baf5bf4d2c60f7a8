//! Actions of an endpoint that no message of its peer explains so far.
//!
//! The monitor may process the directions out of order, so the explanation may come later. Rules
//! check the actions that are unexplained when the connection ends. Memory: the first [`MOST`]
//! actions of each kind.

use super::credits::reached;
use crate::parse::Located;

const MOST: usize = 16;

/// An RDMA Write or a Read Request whose STag is in no open advertisement of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StrayRdma {
    /// Location of the STag in the capture.
    pub place: Located,
    /// The STag of the peer's buffer.
    pub stag: u32,
    /// Whether the access is an RDMA Write. Otherwise it is a Read Request.
    pub write: bool,
}

/// A message that takes credit back: its MSeqAck + Bufs is lower than in an earlier message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepBack {
    /// Location of the message's BSDH.
    pub header: Located,
    /// MSeqAck of the message.
    pub mseq_ack: u32,
    /// The highest MSeqAck + Bufs in earlier messages.
    pub from: u32,
    /// MSeqAck + Bufs of the message.
    pub to: u32,
}

/// A message that acknowledges messages which the peer did not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// Location of the message's MSeqAck.
    pub octets: Located,
    /// MSeqAck of the message.
    pub mseq_ack: u32,
    /// The peer's last MSeq; `None` if the peer sent only Hello or HelloAck.
    pub sent: Option<u32>,
}

/// Unexplained actions of one endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strays {
    /// Accesses to STags that were not advertised.
    pub rdma: Vec<StrayRdma>,
    /// Messages that take credit back.
    pub steps_back: Vec<StepBack>,
    /// The first message that acknowledges unsent messages.
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

    /// Records that the peer advertises a buffer. `for_writes`: the advertisement is a SinkAvail.
    pub(super) fn advertised(&mut self, stag: u32, for_writes: bool) {
        self.rdma.retain(|stray| stray.stag != stag || stray.write != for_writes);
    }

    /// Records that the peer sends a SrcAvailCancel. The receiver of the SrcAvailCancel then holds
    /// MSeqAck back (section 9.5.4, interpretation C19).
    pub(super) fn canceled(&mut self, mseq: u32) {
        self.steps_back.retain(|step| step.mseq_ack.wrapping_add(1) != mseq);
    }

    /// Records that the first message of the peer has MSeq 0. This message uses a buffer, but
    /// MSeqAck stays 0 (interpretation C4), so a step back by one is correct.
    pub(super) fn counts_from_zero(&mut self) {
        self.steps_back.retain(|step| step.from.wrapping_sub(step.to) != 1);
    }

    /// Records that the peer sends a message.
    pub(super) fn sent(&mut self, mseq: u32) {
        self.ahead = self.ahead.filter(|ahead| !reached(mseq, ahead.mseq_ack));
    }
}
