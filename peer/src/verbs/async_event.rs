//! Asynchronous Events, and the event for each inbound fault (draft-hilland-rddp-verbs section
//! 8.3.3, Figures 24, 25 and 37).

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
    /// The resource that the event concerns.
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

/// Kind of event (draft Figure 37).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventId {
    /// In state Closing, a segment arrived or work was unfinished. The event has a second cause:
    /// the LLP failed in state Terminate, and no event was reported before this failure.
    BadClose,
    /// The peer closed while work was unfinished.
    BadLlpClose,
    /// A failed CQ rejected a completion of the Queue Pair.
    CqOperation,
    /// A CQ failed.
    CqOperationError,
    /// A completion of the Queue Pair did not fit into a full CQ.
    CqOverflow,
    /// A completion did not fit into the full CQ.
    CqOverflowDetected,
    /// The DDP version of a segment differs from the DDP version of the stream.
    InvalidDdpVersion,
    /// A segment has a queue number that the stream does not use.
    InvalidDdpQueue,
    /// The RDMAP version of a segment differs from the RDMAP version of the stream.
    InvalidRdmapVersion,
    /// Read Request or Atomic Request: the requested memory is outside the region or window.
    IrrqBaseAndBounds,
    /// Read Request or Atomic Request: the STag of the requested memory is invalid.
    IrrqInvalidStag,
    /// Read Request or Atomic Request: the requested memory belongs to another PD or Queue Pair.
    IrrqInvalidPd,
    /// Read Request or Atomic Request: the MSN is too high, so earlier requests are missing.
    IrrqMsnGap,
    /// Read Request or Atomic Request: the MSN is too low, so a request with this MSN arrived
    /// before.
    IrrqMsnRange,
    /// Read Request or Atomic Request: the region or window lacks the necessary right.
    IrrqAccessRights,
    /// The peer sent more Read Requests and Atomic Requests than the IRD allows.
    IrrqTooManyReads,
    /// Read Request or Atomic Request: TO plus length of the requested memory exceeds 2^64.
    IrrqWrap,
    /// Both endpoints closed gracefully.
    LlpCloseComplete,
    /// The connection was lost because of a time-out.
    LlpConnectionLost,
    /// The peer reset the connection.
    LlpConnectionReset,
    /// The Queue Pair failed.
    LocalQpCatastrophic,
    /// A marker does not point to the `ULPDU_Length` of its FPDU.
    LlpIntegrityBadFpdu,
    /// An FPDU has a wrong CRC.
    LlpIntegrityCrc,
    /// A segment is too short for its header.
    LlpIntegritySegmentSize,
    /// The last segment of a message is missing.
    MissingLast,
    /// Tagged segment: the region or window lacks the necessary right.
    ProtectionAccessRights,
    /// Tagged segment: the payload is outside the region or window.
    ProtectionBaseAndBounds,
    /// Tagged segment: the STag is invalid.
    ProtectionInvalidStag,
    /// Tagged segment: the STag belongs to another PD or Queue Pair.
    ProtectionInvalidPd,
    /// Tagged segment: TO plus length exceeds 2^64.
    ProtectionWrap,
    /// The Queue Pair has more messages in progress than its RQ limit allows.
    QpRqLimitReached,
    /// Inbound Reads are not enabled.
    ReadNotEnabled,
    /// A Read Request or Atomic Request has a wrong length, or an MO other than 0.
    ReadRequestFormat,
    /// The RNIC failed.
    RnicCatastrophic,
    /// The MSN of a Send is too high, so earlier Sends are missing.
    RqMsnGap,
    /// The MSN of a Send is too low, the MO of a Send is wrong, or no receive is posted for a Send.
    RqMsnRange,
    /// An S-RQ failed.
    SrqCatastrophic,
    /// The Queue Pair needs a receive, but its S-RQ has failed.
    SrqErrorOnQp,
    /// The S-RQ has fewer posted receives than its limit.
    SrqLimitReached,
    /// The peer sent a Terminate.
    TerminateReceived,
    /// The opcode is unknown or does not belong to the queue. This event also reports each fault
    /// that has no event of its own.
    UnexpectedOpcode,
    /// Inbound Writes and Read Responses are not enabled.
    WriteNotEnabled,
}

impl EventId {
    /// The event for a fault that no Work Completion reports.
    #[must_use]
    pub const fn of(fault: Fault) -> Self {
        match fault {
            Fault::AtomicOpcode
            | Fault::AtomicResponse
            | Fault::ImmediateSize
            | Fault::Invalidate(_)
            | Fault::Opcode
            | Fault::UnexpectedReadResponse
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

    /// The event for an invalid FPDU.
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

/// The Terminate code for a fault on a Queue Pair. The codes are from RFC 5040 and 5041, with one
/// exception: for all MSN errors of Sends, the code is from draft Figure 24. The RFCs also allow
/// this code.
#[must_use]
pub const fn terminate_code(fault: Fault) -> TerminateError {
    if fault.is_send_msn() { TerminateError::DDP_UNTAGGED_NO_BUFFER } else { fault.code() }
}
