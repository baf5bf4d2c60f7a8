//! Violations by a peer after which the connection cannot continue. Section 8.2.2 of the SDP draft
//! then requires an abortive close.

use weft_core::wire::sdp::{Mid, Mode};
use weft_core::{RequirementId, WireError, requirement};

/// A violation by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The bytes are not an SDP message, or a field has a value that is never valid.
    #[error("malformed message: {0}")]
    Malformed(WireError),
    /// MSeq is not one more than MSeq of the previous message.
    #[error("MSeq is {found} instead of {expected}")]
    Sequence {
        /// MSeq of the previous message plus one.
        expected: u32,
        /// The received MSeq.
        found: u32,
    },
    /// MSeqAck acknowledges a message that this side has not sent yet.
    #[error("MSeqAck is {found}, but the last sent message has MSeq {sent}")]
    AheadOfSent {
        /// The received MSeqAck.
        found: u32,
        /// MSeq of the last message that this side sent.
        sent: u32,
    },
    /// The message is not allowed in the current state. Examples are a second Hello, data after
    /// DisConn, or a ChRcvBuf before the answer to the previous ChRcvBuf.
    #[error("{0} is not allowed in the current state of the connection")]
    OutOfPlace(Mid),
    /// The peer sent DisConn too early. Some bytes have not arrived that the peer's SrcAvails
    /// advertised, or that this side requested by SendSm messages (section 8.2.1, step 1). The
    /// value is the number of missing bytes.
    #[error("the peer sent DisConn, but {0} advertised or requested bytes are missing")]
    Owed(u64),
    /// The Mode of the half-connection does not allow the message.
    #[error("{mid} is not allowed in {mode} Mode")]
    Mode {
        /// The message.
        mid: Mid,
        /// The current Mode.
        mode: Mode,
    },
    /// The peer sent a ModeChange that Figure 26 does not contain. Or the peer is not the Mode
    /// Master (the side that may change the current Mode).
    #[error(
        "ModeChange from {from} to {to} is not allowed for {}",
        if *by_source { "the Data Source" } else { "the Data Sink" }
    )]
    Transition {
        /// The current Mode.
        from: Mode,
        /// The requested Mode.
        to: Mode,
        /// The sender is the Data Source of the half-connection.
        by_source: bool,
    },
    /// The peer sent a completion or SendSm that matches no open advertisement.
    #[error("{0} has no matching open advertisement")]
    Unmatched(Mid),
    /// A completion reports more bytes than the oldest advertisement has left. Or it reports zero
    /// bytes, although the advertisement has bytes left.
    #[error("{mid} reports {found} bytes, but the advertisement has {left} bytes left")]
    Length {
        /// The message.
        mid: Mid,
        /// Len of the message.
        found: u32,
        /// Bytes that the advertisement has left.
        left: u32,
    },
    /// A completion invalidated an STag, but not the STag of the completed advertisement.
    #[error("{mid} invalidates STag {found:#010x} instead of {expected:#010x}")]
    Invalidated {
        /// The message.
        mid: Mid,
        /// The invalidated STag.
        found: u32,
        /// The advertised STag.
        expected: u32,
    },
    /// The peer opened more advertisements than MaxAdverts of this side allows.
    #[error("the peer has more open advertisements than MaxAdverts ({0}) allows")]
    TooManyAdverts(u16),
    /// The peer sent payload while a SrcAvail was not Processed and no SendSm had requested the
    /// data.
    #[error("{0} carries payload, but an earlier SrcAvail is not Processed")]
    AfterSrcAvail(Mid),
    /// Too many answers wait for credit: the peer sends new requests, but gives no credit for the
    /// answers.
    #[error("{0} answers cannot be sent, because the peer sends requests without giving credit for the answers")]
    Unacknowledged(usize),
    /// The peer sent a ChRcvBufAck without a ChRcvBuf, or with a size that the ChRcvBuf does not
    /// allow.
    #[error("ChRcvBufAck has ActSz {found}, but this side requested {expected}")]
    Resize {
        /// ActSz.
        found: u32,
        /// Description of the request that this side had sent.
        expected: &'static str,
    },
}

impl Violation {
    /// Returns the requirement that the peer violated. If the draft has no rule for an invalid
    /// value, returns a requirement of section 8.2.2.
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
