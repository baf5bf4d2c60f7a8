//! Faults in an inbound segment, and the Terminate code of each fault. The peer causes all faults
//! except [`Fault::Buffer`].

use weft_core::wire::ddp::queue;
use weft_core::wire::rdmap::TerminateError;

use crate::ddp::QueueError;
use crate::memory::{AccessError, InvalidateError};

/// Reason why an inbound segment, or the message that it completes, is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The AOpCode is neither FetchAdd nor CmpSwap.
    #[error("unsupported atomic operation")]
    AtomicOpcode,
    /// The Atomic Response does not have 12 octets, or does not answer a request.
    #[error("invalid Atomic Response")]
    AtomicResponse,
    /// The RNIC cannot access the local receive buffer. The peer is not at fault.
    #[error("this endpoint cannot access its receive buffer: {0}")]
    Buffer(AccessError),
    /// The segment's DDP version is not the negotiated version.
    #[error("invalid DDP version")]
    DdpVersion {
        /// True for a tagged segment, false for an untagged segment.
        tagged: bool,
    },
    /// Immediate Data does not have 8 octets.
    #[error("the Immediate Data does not have 8 bytes")]
    ImmediateSize,
    /// The STag of a Send with Invalidate cannot be invalidated.
    #[error("the STag cannot be invalidated: {0}")]
    Invalidate(InvalidateError),
    /// The last segment of a message is missing: another message begins too early, or a message
    /// that must have one segment has no L flag.
    #[error("the last segment of a message is missing")]
    MissingLast,
    /// The address of an Atomic Request is not aligned to 64 bits.
    #[error("the address of an atomic operation is misaligned")]
    Misaligned,
    /// No receive is posted, or this endpoint accepts no Read Requests and Atomic Requests.
    #[error("no receive buffer is available")]
    NoBuffer,
    /// The opcode is unknown, reserved, or does not belong to the segment's queue or buffer model.
    #[error("unexpected opcode")]
    Opcode,
    /// The MSN or MO is wrong, or the payload does not fit.
    #[error("{error}, in queue {qn}")]
    Queue {
        /// Queue number of the segment.
        qn: u32,
        /// Violation of the queue's order or buffer length.
        error: QueueError,
    },
    /// The stream does not use this queue number.
    #[error("the stream does not use this queue number (QN)")]
    QueueNumber,
    /// The segment's RDMAP version is not the negotiated version.
    #[error("invalid RDMAP version")]
    RdmapVersion,
    /// Inbound RDMA Reads are not enabled for the stream.
    #[error("inbound RDMA Reads are not enabled")]
    ReadDisabled,
    /// A Read Request or Atomic Request has a wrong length.
    #[error("the request has a wrong size")]
    RequestSize,
    /// The segment is too short for its header.
    #[error("the segment is too short for its header")]
    SegmentSize,
    /// A Read Request or Atomic Request has no right to access the requested memory.
    #[error("the requested memory cannot be accessed: {0}")]
    Source(AccessError),
    /// A tagged segment has no right to write to its STag and offset.
    #[error("the tagged buffer cannot be written: {0}")]
    Tagged(AccessError),
    /// The contents of a Terminate are invalid.
    #[error("malformed Terminate")]
    Terminate,
    /// The peer has sent more requests than this endpoint can store.
    #[error("too many Read Requests")]
    TooManyReads,
    /// A Read Response arrived, but no Read is outstanding.
    #[error("unexpected Read Response: no Read is outstanding")]
    UnexpectedReadResponse,
    /// Inbound Writes and Read Responses are not enabled for the stream.
    #[error("inbound RDMA Writes are not enabled")]
    WriteDisabled,
}

impl Fault {
    /// The fault for an error of queue `qn`.
    #[must_use]
    pub const fn of_queue(qn: u32, error: QueueError) -> Self {
        match error {
            QueueError::MissingLast => Fault::MissingLast,
            error => Fault::Queue { qn, error },
        }
    }

    /// Layer, type and code of the Terminate, from RFC 5040, 5041 and 7306. If the RFCs do not
    /// define a code, the code is from Figures 23 and 24 of the verbs draft.
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
            Fault::Opcode | Fault::UnexpectedReadResponse => TerminateError::RDMAP_UNEXPECTED_OPCODE,
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

    /// Returns whether the fault is an MSN error of the Send queue. Figure 24 of the draft has one
    /// code for all of these errors.
    #[must_use]
    pub const fn is_send_msn(self) -> bool {
        matches!(self, Fault::Queue { qn: queue::SEND, error: QueueError::MsnGap | QueueError::MsnRange })
    }
}
