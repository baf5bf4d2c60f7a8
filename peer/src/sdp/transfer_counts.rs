//! Counters of the bytes that moved on a half-connection, by Data Transfer Mechanism (section 9 of
//! the SDP draft). When all data has arrived, both sides of a half-connection have the same counts.

use weft_core::wire::sdp::{Body, Mid};

/// Counters of one mechanism since start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TransferCount {
    /// Number of messages that carried bytes or reported the transfer of bytes.
    pub operations: u64,
    /// Number of user bytes.
    pub octets: u64,
}

/// Counters of all mechanisms of one half-connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TransferCounts {
    /// Bcopy: Data messages with payload, and the payload of SrcAvails.
    pub bcopy: TransferCount,
    /// Transaction: SinkAvails with payload.
    pub transaction: TransferCount,
    /// Read Zcopy: bytes that RdmaRdCompl messages report.
    pub read_zcopy: TransferCount,
    /// Write Zcopy: bytes that RdmaWrCompl messages report.
    pub write_zcopy: TransferCount,
}

impl TransferCounts {
    /// Number of bytes that all mechanisms moved.
    #[must_use]
    pub fn octets(&self) -> u64 {
        [self.bcopy, self.transaction, self.read_zcopy, self.write_zcopy].iter().map(|count| count.octets).sum()
    }

    /// Counts a message with `payload` bytes of payload.
    pub(super) fn note(&mut self, body: &Body<'_>, payload: u32) {
        let (count, octets) = match body {
            Body::RdmaRdCompl(header) => (&mut self.read_zcopy, header.len),
            Body::RdmaWrCompl(header) => (&mut self.write_zcopy, header.len),
            Body::SinkAvail(..) => (&mut self.transaction, payload),
            _ => (&mut self.bcopy, payload),
        };
        if octets > 0 {
            count.operations += 1;
            count.octets += u64::from(octets);
        }
    }
}

/// Returns whether the message reports bytes that the receiver of the message has sent. Such a
/// message counts for the half-connection on which its receiver sends.
pub(super) fn is_answer(mid: Mid) -> bool {
    mid == Mid::RDMA_RD_COMPL
}
