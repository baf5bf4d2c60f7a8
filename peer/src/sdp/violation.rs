//! Violations of a peer after which the connection cannot continue: section 8.2.2 then requires an
//! abortive close.

use weft_core::wire::sdp::{Mid, Mode};
use weft_core::{RequirementId, WireError, requirement};

/// A violation by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The octets are no SDP message, or hold a value that none may have.
    #[error("malformed message: {0}")]
    Malformed(WireError),
    /// MSeq does not follow the one before.
    #[error("MSeq {found}: expected {expected}")]
    Sequence {
        /// One more than the one before.
        expected: u32,
        /// The received value.
        found: u32,
    },
    /// MSeqAck is ahead of everything that was sent (C7).
    #[error("MSeqAck {found} is ahead of {sent}, the last message sent")]
    AheadOfSent {
        /// MSeqAck.
        found: u32,
        /// MSeq sent last.
        sent: u32,
    },
    /// A message that has no place here: Hello twice, something other than HelloAck first, data or
    /// another DisConn after DisConn, ChRcvBuf in front of the answer to the last one.
    #[error("{0} is not allowed here")]
    OutOfPlace(Mid),
    /// DisConn before all that was posted is out (section 8.2.1, step 1).
    #[error("DisConn before {0} requested bytes were sent")]
    Owed(u64),
    /// A message that the Mode of the half-connection does not allow.
    #[error("{mid} in {mode} Mode")]
    Mode {
        /// The message.
        mid: Mid,
        /// The Mode.
        mode: Mode,
    },
    /// A ModeChange that Figure 26 does not have, or that its sender is not Master for.
    #[error("ModeChange from {from} to {to} by {}", if *by_source { "the Data Source" } else { "the Data Sink" })]
    Transition {
        /// The Mode that holds.
        from: Mode,
        /// The requested Mode.
        to: Mode,
        /// The side that requested it.
        by_source: bool,
    },
    /// A completion or SendSm that no open advertisement explains.
    #[error("{0} without an open advertisement")]
    Unmatched(Mid),
    /// A completion about more octets than the oldest advertisement has left, or about none.
    #[error("{mid} of {found} bytes: only {left} are left")]
    Length {
        /// The message.
        mid: Mid,
        /// Its Len.
        found: u32,
        /// What the advertisement has.
        left: u32,
    },
    /// The peer invalidated another STag than the one of the advertisement that it completed.
    #[error("{mid} invalidates STag {found:#010x} instead of {expected:#010x}")]
    Invalidated {
        /// The message.
        mid: Mid,
        /// What was invalidated.
        found: u32,
        /// What was advertised.
        expected: u32,
    },
    /// More advertisements than this side offered to keep.
    #[error("more than {0} advertisements are outstanding")]
    TooManyAdverts(u16),
    /// Payload after a SrcAvail that is not Processed, and no SendSm requested it.
    #[error("{0} with payload after a SrcAvail that is not Processed")]
    AfterSrcAvail(Mid),
    /// New requests before the answers to the old ones, which wait for credit.
    #[error("{0} answers wait to be sent: the peer sends requests without reading their answers")]
    Unacknowledged(usize),
    /// ChRcvBufAck without ChRcvBuf, or with a size that the request does not allow.
    #[error("ChRcvBufAck of {found} bytes: {expected}")]
    Resize {
        /// ActSz.
        found: u32,
        /// What could have come.
        expected: &'static str,
    },
}

impl Violation {
    /// The requirement that the peer broke; by C25 a value without a rule of its own breaks section
    /// 8.2.2's.
    #[must_use]
    pub fn requirement(&self) -> RequirementId {
        match self {
            Violation::Malformed(error) => error.requirement.unwrap_or(requirement!("SDP-8.2.2-11")),
            Violation::Sequence { .. } => requirement!("SDP-6.1.5-2"),
            Violation::AheadOfSent { .. } => requirement!("SDP-6.1.6-1"),
            Violation::OutOfPlace(Mid::DATA | Mid::SRC_AVAIL | Mid::SINK_AVAIL) => requirement!("SDP-8.2.1-9"),
            Violation::Owed(_) => requirement!("SDP-8.2.1-5"),
            Violation::OutOfPlace(_)
            | Violation::Unmatched(_)
            | Violation::Unacknowledged(_)
            | Violation::Resize { .. } => {
                requirement!("SDP-8.2.2-10")
            }
            Violation::AfterSrcAvail(_) => requirement!("SDP-11.2-6"),
            Violation::Mode { mid: Mid::SINK_AVAIL, .. } => requirement!("SDP-12-20"),
            Violation::Mode { .. } => requirement!("SDP-12-17"),
            Violation::Transition { .. } => requirement!("SDP-12-1"),
            Violation::Length { mid: Mid::RDMA_RD_COMPL, .. } => requirement!("SDP-9.2-13"),
            Violation::Length { .. } => requirement!("SDP-9.3-14"),
            Violation::Invalidated { mid: Mid::RDMA_RD_COMPL, .. } => requirement!("SDP-9.2-29"),
            Violation::Invalidated { .. } => requirement!("SDP-9.3-12"),
            Violation::TooManyAdverts(_) => requirement!("SDP-11.3-23"),
        }
    }
}
