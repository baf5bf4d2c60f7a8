//! Faults of a peer or of a buffer in an inbound segment: one name for each, and its Terminate
//! code.

use weft_core::wire::ddp::queue;
use weft_core::wire::rdmap::TerminateError;

use crate::ddp::QueueError;
use crate::memory::{AccessError, InvalidateError};

/// Why an inbound segment, or the message that it ends, is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// An AOpCode that is neither FetchAdd nor CmpSwap.
    #[error("unsupported atomic operation")]
    AtomicOpcode,
    /// Not 12 octets, or it answers no request.
    #[error("invalid Atomic Response")]
    AtomicResponse,
    /// The receiving side's own buffer is not as it should be: the fault is not the peer's.
    #[error("receive buffer: {0}")]
    Buffer(AccessError),
    /// Another version of DDP than the stream's.
    #[error("invalid DDP version")]
    DdpVersion {
        /// In a tagged segment.
        tagged: bool,
    },
    /// Not 8 octets.
    #[error("Immediate Data of a wrong size")]
    ImmediateSize,
    /// The STag of a Send with Invalidate is not invalidated.
    #[error("invalidate: {0}")]
    Invalidate(InvalidateError),
    /// A message is not ended where the next begins.
    #[error("last segment missing")]
    MissingLast,
    /// An atomic operation's address is not aligned to 64 bits.
    #[error("atomic operation on a misaligned address")]
    Misaligned,
    /// No receive is posted.
    #[error("no buffer available")]
    NoBuffer,
    /// Unknown, reserved, or in the wrong place.
    #[error("unexpected opcode")]
    Opcode,
    /// It is not the turn of the segment.
    #[error("queue {qn}: {error}")]
    Queue {
        /// The queue.
        qn: u32,
        /// Why not.
        error: QueueError,
    },
    /// The stream has no such queue.
    #[error("invalid QN")]
    QueueNumber,
    /// Another version of RDMAP than the stream's.
    #[error("invalid RDMAP version")]
    RdmapVersion,
    /// Inbound Reads are not enabled here.
    #[error("RDMA Read is not enabled")]
    ReadDisabled,
    /// A Read Request or Atomic Request of a wrong size.
    #[error("request of a wrong size")]
    RequestSize,
    /// Too short for its header.
    #[error("segment too short")]
    SegmentSize,
    /// A Read Request or Atomic Request may not use the memory that it names.
    #[error("request: {0}")]
    Source(AccessError),
    /// A tagged segment may not write to the memory that it names.
    #[error("tagged buffer: {0}")]
    Tagged(AccessError),
    /// A Terminate that is no good.
    #[error("malformed Terminate")]
    Terminate,
    /// More Read Requests than this side can hold.
    #[error("too many Read Requests")]
    TooManyReads,
    /// A Read Response, and no Read waits for one.
    #[error("unexpected opcode: nothing was requested")]
    Unasked,
    /// Inbound Writes and Read Responses are not enabled here.
    #[error("RDMA Write is not enabled")]
    WriteDisabled,
}

impl Fault {
    /// A fault of queue `qn`.
    #[must_use]
    pub const fn of_queue(qn: u32, error: QueueError) -> Self {
        match error {
            QueueError::MissingLast => Fault::MissingLast,
            error => Fault::Queue { qn, error },
        }
    }

    /// Layer, type and code as RFC 5040, 5041 and 7306 number it. Where they leave it open: the
    /// verbs draft's Figures 23 and 24.
    #[must_use]
    pub const fn code(self) -> TerminateError {
        match self {
            Fault::AtomicOpcode | Fault::AtomicResponse | Fault::ImmediateSize | Fault::Terminate => {
                TerminateError::RDMAP_OPERATION_UNSPECIFIED
            }
            Fault::Buffer(_) => TerminateError::RDMAP_LOCAL_CATASTROPHIC,
            Fault::DdpVersion { tagged: true } => TerminateError::DDP_TAGGED_INVALID_VERSION,
            Fault::DdpVersion { tagged: false } => TerminateError::DDP_UNTAGGED_INVALID_VERSION,
            Fault::Invalidate(error) => error.code(),
            Fault::MissingLast | Fault::Misaligned => TerminateError::RDMAP_CATASTROPHIC_STREAM,
            Fault::NoBuffer => TerminateError::DDP_UNTAGGED_NO_BUFFER,
            Fault::Opcode | Fault::Unasked => TerminateError::RDMAP_UNEXPECTED_OPCODE,
            Fault::Queue { error, .. } => match error {
                QueueError::MissingLast => TerminateError::RDMAP_CATASTROPHIC_STREAM,
                QueueError::MessageOffset => TerminateError::DDP_UNTAGGED_INVALID_MO,
                QueueError::MsnGap | QueueError::MsnRange => TerminateError::DDP_UNTAGGED_MSN_RANGE,
                QueueError::TooLong => TerminateError::DDP_UNTAGGED_TOO_LONG,
            },
            Fault::QueueNumber | Fault::ReadDisabled => TerminateError::DDP_UNTAGGED_INVALID_QN,
            Fault::RdmapVersion => TerminateError::RDMAP_INVALID_VERSION,
            Fault::RequestSize | Fault::SegmentSize => TerminateError::DDP_LOCAL_CATASTROPHIC,
            Fault::Source(error) => error.request_code(),
            Fault::Tagged(error) => error.tagged_code(),
            Fault::TooManyReads => TerminateError::DDP_UNTAGGED_MSN_RANGE,
            Fault::WriteDisabled => TerminateError::DDP_TAGGED_STAG_NOT_ASSOCIATED,
        }
    }

    /// The fault is of the Send queue's order: draft Figure 24 has one code for all of these.
    #[must_use]
    pub const fn is_send_msn(self) -> bool {
        matches!(self, Fault::Queue { qn: queue::SEND, error: QueueError::MsnGap | QueueError::MsnRange })
    }
}
