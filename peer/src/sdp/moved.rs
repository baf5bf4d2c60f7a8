//! Bytes moved on a half-connection, by Data Transfer Mechanism (section 9). Once all data has
//! arrived, both sides of a half-connection have the same counts.

use weft_core::wire::sdp::{Body, Mid};

/// Operations of one mechanism, and the octets that they moved, since start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Count {
    /// Messages: those with the octets, or those that report them.
    pub operations: u64,
    /// Octets of the user.
    pub octets: u64,
}

/// The mechanisms of one half-connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Moved {
    /// Bcopy: Data messages with octets, and SrcAvails, whose first octets go the same way.
    pub bcopy: Count,
    /// Transaction: SinkAvails with octets.
    pub transaction: Count,
    /// Read Zcopy: RdmaRdCompls.
    pub read_zcopy: Count,
    /// Write Zcopy: RdmaWrCompls.
    pub write_zcopy: Count,
}

impl Moved {
    /// Octets by all mechanisms.
    #[must_use]
    pub fn octets(&self) -> u64 {
        [self.bcopy, self.transaction, self.read_zcopy, self.write_zcopy].iter().map(|count| count.octets).sum()
    }

    /// Such a message went by, with this much payload.
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

/// The message is about what its receiver sends.
pub(super) fn is_answer(mid: Mid) -> bool {
    mid == Mid::RDMA_RD_COMPL
}
