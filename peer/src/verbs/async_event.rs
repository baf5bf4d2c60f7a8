//! Asynchronous Events, and which one an inbound fault becomes (draft section 8.3.3, Figures 24, 25
//! and 37).

use weft_core::wire::ddp::queue;
use weft_core::wire::rdmap::TerminateError;

use super::{CqHandle, QpHandle, SrqHandle};
use crate::ddp::QueueError;
use crate::memory::{AccessError, QpId};
use crate::mpa::FpduError;
use crate::rdmap::Fault;

/// An event that no Work Completion reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What it is about.
    pub resource: Resource,
    /// The event.
    pub event: EventId,
}

/// The resource of an [`AsyncEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A Completion Queue.
    Cq(CqHandle),
    /// A Queue Pair.
    Qp(QpHandle, QpId),
    /// A Shared Receive Queue.
    Srq(SrqHandle),
    /// The RNIC itself.
    Rnic,
}

/// What happened (draft Figure 37).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventId {
    /// In Closing a segment arrived, or work was left.
    BadClose,
    /// The peer closed while work was left.
    BadLlpClose,
    /// A CQ that failed took no completion of the Queue Pair's.
    CqOperation,
    /// A CQ failed.
    CqOperationError,
    /// A CQ had no room for a completion of the Queue Pair's.
    CqOverflow,
    /// A CQ had no room for a completion.
    CqOverflowDetected,
    /// The DDP version is another.
    InvalidDdpVersion,
    /// The stream has no such queue.
    InvalidDdpQueue,
    /// The RDMAP version is another.
    InvalidRdmapVersion,
    /// A Read Request's source: bounds.
    IrrqBaseAndBounds,
    /// A Read Request's source: STag.
    IrrqInvalidStag,
    /// A Read Request's source: PD or Queue Pair.
    IrrqInvalidPd,
    /// Read Requests are missing.
    IrrqMsnGap,
    /// A Read Request came before.
    IrrqMsnRange,
    /// A Read Request's source: rights.
    IrrqAccessRights,
    /// More Read Requests than IRD.
    IrrqTooManyReads,
    /// A Read Request's source: TO wrap.
    IrrqWrap,
    /// Both sides closed gracefully.
    LlpCloseComplete,
    /// The connection was lost: a time-out.
    LlpConnectionLost,
    /// The peer reset the connection.
    LlpConnectionReset,
    /// The Queue Pair failed.
    LocalQpCatastrophic,
    /// Marker and length disagree.
    LlpIntegrityBadFpdu,
    /// The CRC is wrong.
    LlpIntegrityCrc,
    /// A segment is too short.
    LlpIntegritySegmentSize,
    /// The last segment of a message is missing.
    MissingLast,
    /// A tagged segment: rights.
    ProtectionAccessRights,
    /// A tagged segment: bounds.
    ProtectionBaseAndBounds,
    /// A tagged segment: STag.
    ProtectionInvalidStag,
    /// A tagged segment: PD or Queue Pair.
    ProtectionInvalidPd,
    /// A tagged segment: TO wrap.
    ProtectionWrap,
    /// More messages than the limit are in progress on the Queue Pair.
    QpRqLimitReached,
    /// Inbound Reads are not enabled.
    ReadNotEnabled,
    /// A Read Request of a wrong size, or with an offset.
    ReadRequestFormat,
    /// The RNIC failed.
    RnicCatastrophic,
    /// Sends are missing.
    RqMsnGap,
    /// A Send came before, or no receive is posted.
    RqMsnRange,
    /// An S-RQ failed.
    SrqCatastrophic,
    /// The Queue Pair's S-RQ, which failed, gave no receive.
    SrqErrorOnQp,
    /// An S-RQ has less work requests left than its limit.
    SrqLimitReached,
    /// The peer sent a Terminate.
    TerminateReceived,
    /// The opcode is unknown or in the wrong place.
    UnexpectedOpcode,
    /// Inbound Writes and Read Responses are not enabled.
    WriteNotEnabled,
}

impl EventId {
    /// The event of a fault that no Work Completion reports.
    #[must_use]
    pub const fn of(fault: Fault) -> Self {
        match fault {
            Fault::AtomicOpcode
            | Fault::AtomicResponse
            | Fault::ImmediateSize
            | Fault::Invalidate(_)
            | Fault::Opcode
            | Fault::Unasked
            | Fault::Buffer(_)
            | Fault::Misaligned
            | Fault::Terminate => EventId::UnexpectedOpcode,
            Fault::DdpVersion { .. } => EventId::InvalidDdpVersion,
            Fault::MissingLast => EventId::MissingLast,
            Fault::NoBuffer => EventId::RqMsnRange,
            Fault::Queue { qn, error } => of_queue(qn, error),
            Fault::QueueNumber => EventId::InvalidDdpQueue,
            Fault::RdmapVersion => EventId::InvalidRdmapVersion,
            Fault::ReadDisabled => EventId::ReadNotEnabled,
            Fault::RequestSize => EventId::ReadRequestFormat,
            Fault::SegmentSize => EventId::LlpIntegritySegmentSize,
            Fault::Source(error) => match error {
                AccessError::BaseAndBounds => EventId::IrrqBaseAndBounds,
                AccessError::InvalidStag => EventId::IrrqInvalidStag,
                AccessError::NotAssociated => EventId::IrrqInvalidPd,
                AccessError::Rights => EventId::IrrqAccessRights,
                AccessError::Wrap => EventId::IrrqWrap,
            },
            Fault::Tagged(error) => match error {
                AccessError::BaseAndBounds => EventId::ProtectionBaseAndBounds,
                AccessError::InvalidStag => EventId::ProtectionInvalidStag,
                AccessError::NotAssociated => EventId::ProtectionInvalidPd,
                AccessError::Rights => EventId::ProtectionAccessRights,
                AccessError::Wrap => EventId::ProtectionWrap,
            },
            Fault::TooManyReads => EventId::IrrqTooManyReads,
            Fault::WriteDisabled => EventId::WriteNotEnabled,
        }
    }

    /// The event of an FPDU that is invalid.
    #[must_use]
    pub const fn of_fpdu(error: &FpduError) -> Self {
        match error {
            FpduError::Crc { .. } => EventId::LlpIntegrityCrc,
            FpduError::Marker { .. } => EventId::LlpIntegrityBadFpdu,
        }
    }
}

const fn of_queue(qn: u32, error: QueueError) -> EventId {
    match (qn, error) {
        (_, QueueError::MissingLast) => EventId::MissingLast,
        (queue::READ_REQUEST, QueueError::MessageOffset | QueueError::TooLong) => EventId::ReadRequestFormat,
        (queue::READ_REQUEST, QueueError::MsnGap) => EventId::IrrqMsnGap,
        (queue::READ_REQUEST, QueueError::MsnRange) => EventId::IrrqMsnRange,
        (queue::SEND, QueueError::MsnGap) => EventId::RqMsnGap,
        (queue::SEND, QueueError::MsnRange | QueueError::MessageOffset | QueueError::TooLong) => EventId::RqMsnRange,
        (_, QueueError::MsnGap | QueueError::MsnRange | QueueError::MessageOffset | QueueError::TooLong) => {
            EventId::UnexpectedOpcode
        }
    }
}

/// The Terminate code of a fault on a Queue Pair: RFC 5040's and 5041's, but for the order of
/// Sends, where draft Figure 24 has one code (both are accepted by the RFCs' words).
#[must_use]
pub const fn terminate_code(fault: Fault) -> TerminateError {
    if fault.is_send_msn() { TerminateError::DDP_UNTAGGED_NO_BUFFER } else { fault.code() }
}
