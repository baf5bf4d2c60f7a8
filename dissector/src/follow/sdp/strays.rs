//! Actions of an end that nothing explains so far.
//!
//! The directions of a capture may be out of step, so the explanation may come later. Rules check
//! what is left when the connection ends. Memory: the first [`MOST`] of each kind.

use super::credits::reached;
use crate::parse::Located;

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

/// A message that takes credit back: its MSeqAck + Bufs is lower than that of an earlier message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepBack {
    /// Where its BSDH is.
    pub header: Located,
    /// Its MSeqAck.
    pub mseq_ack: u32,
    /// The highest MSeqAck + Bufs before it.
    pub from: u32,
    /// Its own MSeqAck + Bufs.
    pub to: u32,
}

/// A message that acknowledges messages that the peer did not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// Where its MSeqAck is.
    pub octets: Located,
    /// Its MSeqAck.
    pub mseq_ack: u32,
    /// The peer's last MSeq; `None` if the peer sent only Hello or HelloAck.
    pub sent: Option<u32>,
}

/// Unexplained actions of one end.
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

    /// The peer advertises a buffer. `for_writes`: in a SinkAvail.
    pub(super) fn advertised(&mut self, stag: u32, for_writes: bool) {
        self.rdma.retain(|stray| stray.stag != stag || stray.write != for_writes);
    }

    /// The peer sends a SrcAvailCancel, after which its receiver holds MSeqAck back (section 9.5.4,
    /// reading C19).
    pub(super) fn canceled(&mut self, mseq: u32) {
        self.steps_back.retain(|step| step.mseq_ack.wrapping_add(1) != mseq);
    }

    /// The first message of the peer has MSeq 0: its buffer is used, and MSeqAck stays 0 (reading
    /// C4).
    pub(super) fn counts_from_zero(&mut self) {
        self.steps_back.retain(|step| step.from.wrapping_sub(step.to) != 1);
    }

    /// The peer sends a message.
    pub(super) fn sent(&mut self, mseq: u32) {
        self.ahead = self.ahead.filter(|ahead| !reached(mseq, ahead.mseq_ack));
    }
}
