//! Keeps actions of an endpoint that no message of its peer explains so far.
//!
//! The monitor sometimes processes the directions out of order. So it sometimes processes an action
//! before the message that explains this action. When the connection ends, rules check the actions
//! that are still unexplained. For each kind, at most the first [`MAX_ACTIONS`] actions are kept.

use super::credits::reached;
use crate::parse::Location;

const MAX_ACTIONS: usize = 16;

/// An RDMA Write or a Read Request with an STag that is in no open advertisement of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnexplainedAccess {
    /// Location of the STag in the capture.
    pub stag_location: Location,
    /// The STag of the peer's buffer.
    pub stag: u32,
    /// Whether the access is an RDMA Write. If false, it is a Read Request.
    pub write: bool,
}

/// A message that takes credit back: its MSeqAck + Bufs is lower than in an earlier message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CreditDecrease {
    /// Location of the message's BSDH.
    pub header: Location,
    /// MSeqAck of the message.
    pub mseq_ack: u32,
    /// The highest MSeqAck + Bufs in earlier messages.
    pub from: u32,
    /// MSeqAck + Bufs of the message.
    pub to: u32,
}

/// A message that acknowledges messages although the peer did not send these messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnsentAck {
    /// Location of the message's MSeqAck.
    pub octets: Location,
    /// MSeqAck of the message.
    pub mseq_ack: u32,
    /// The peer's last MSeq; `None` if the peer sent only Hello or HelloAck.
    pub sent: Option<u32>,
}

/// Unexplained actions of one endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnexplainedActions {
    /// Accesses to STags that were not advertised.
    pub rdma: Vec<UnexplainedAccess>,
    /// Messages that take credit back.
    pub credit_decreases: Vec<CreditDecrease>,
    /// The first message that acknowledges unsent messages.
    pub unsent_ack: Option<UnsentAck>,
}

impl UnexplainedActions {
    pub(super) fn record_access(&mut self, access: UnexplainedAccess) {
        if self.rdma.len() < MAX_ACTIONS {
            self.rdma.push(access);
        }
    }

    pub(super) fn record_credit_decrease(&mut self, decrease: CreditDecrease) {
        if self.credit_decreases.len() < MAX_ACTIONS {
            self.credit_decreases.push(decrease);
        }
    }

    /// Records that the peer advertises a buffer. `for_writes` is set if the advertisement is a
    /// SinkAvail.
    pub(super) fn record_advert(&mut self, stag: u32, for_writes: bool) {
        self.rdma.retain(|access| access.stag != stag || access.write != for_writes);
    }

    /// Records that the peer sends a SrcAvailCancel. From then on, the receiver of the
    /// SrcAvailCancel holds MSeqAck back (weft's interpretation of section 9.5.4 of the SDP draft).
    pub(super) fn record_cancel(&mut self, mseq: u32) {
        self.credit_decreases.retain(|decrease| decrease.mseq_ack.wrapping_add(1) != mseq);
    }

    /// Records that the first message of the peer has MSeq 0. This message uses a buffer, but
    /// MSeqAck stays 0. So a decrease of MSeqAck + Bufs by one is correct.
    pub(super) fn record_zero_start(&mut self) {
        self.credit_decreases.retain(|decrease| decrease.from.wrapping_sub(decrease.to) != 1);
    }

    /// Records that the peer sends a message.
    pub(super) fn record_message(&mut self, mseq: u32) {
        self.unsent_ack = self.unsent_ack.filter(|unsent_ack| !reached(mseq, unsent_ack.mseq_ack));
    }
}
