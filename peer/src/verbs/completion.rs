//! Work Completions and their statuses (draft-hilland-rddp-verbs sections 8.2.3, 9.3.2.1 and Figure
//! 36).

use weft_core::wire::rdmap::Immediate;

use super::work_request::Operation;
use crate::memory::{AccessError, BindError, FastRegisterError, InvalidateError, MappingError, QpId};

/// The result of the verb Poll for Completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCompletion {
    /// The `wr_id` of the Work Request. Valid with every status.
    pub wr_id: u64,
    /// The Queue Pair that processed the Work Request.
    pub qp: QpId,
    /// Success, or the reason for the failure.
    pub status: CompletionStatus,
    /// The kind of operation.
    pub operation: CompletedOperation,
    /// For a successful receive, the number of received bytes. Otherwise 0.
    pub octets: u32,
    /// The STag that an inbound Send with Invalidate invalidated.
    pub invalidated: Option<u32>,
    /// Received Immediate Data. `None` for a Send.
    pub immediate: Option<Immediate>,
    /// The previous value of the eight bytes that an Atomic Operation changed.
    pub original_value: Option<u64>,
    /// True for a receive if the sender of its message requested a solicited event.
    pub solicited: bool,
}

/// Kind of a completed Work Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompletedOperation {
    /// Atomic Operation.
    Atomic,
    /// Bind Memory Window.
    Bind,
    /// Fast-Register.
    FastRegister,
    /// Immediate Data.
    Immediate,
    /// Invalidate Local STag.
    InvalidateLocal,
    /// RDMA Read.
    Read,
    /// RDMA Read with Invalidate Local STag.
    ReadInvalidateLocal,
    /// Receive.
    Receive,
    /// Send.
    Send,
    /// Send with Invalidate.
    SendInvalidate,
    /// Send with Solicited Event.
    SendSolicited,
    /// Send with Solicited Event and Invalidate.
    SendSolicitedInvalidate,
    /// RDMA Write.
    Write,
}

impl From<&Operation> for CompletedOperation {
    fn from(operation: &Operation) -> Self {
        match operation {
            Operation::Send { solicited: false, invalidate: None, .. } => CompletedOperation::Send,
            Operation::Send { solicited: true, invalidate: None, .. } => CompletedOperation::SendSolicited,
            Operation::Send { solicited: false, invalidate: Some(_), .. } => CompletedOperation::SendInvalidate,
            Operation::Send { solicited: true, invalidate: Some(_), .. } => CompletedOperation::SendSolicitedInvalidate,
            Operation::Immediate { .. } => CompletedOperation::Immediate,
            Operation::Write { .. } => CompletedOperation::Write,
            Operation::Read { invalidate_local: false, .. } => CompletedOperation::Read,
            Operation::Read { invalidate_local: true, .. } => CompletedOperation::ReadInvalidateLocal,
            Operation::Atomic { .. } => CompletedOperation::Atomic,
            Operation::Bind(_) => CompletedOperation::Bind,
            Operation::FastRegister(_) => CompletedOperation::FastRegister,
            Operation::InvalidateLocal(_) => CompletedOperation::InvalidateLocal,
        }
    }
}

/// Status of a completed Work Request (draft Figure 36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CompletionStatus {
    /// The operation succeeded.
    #[error("success")]
    Success,
    /// The STag lacks a right, or an invalidation failed because windows are bound to the region.
    #[error("access violation")]
    AccessViolation,
    /// The access is outside the region or window.
    #[error("base and bounds violation")]
    BaseAndBounds,
    /// The Queue Pair left RTS before the Work Request was complete.
    #[error("flushed")]
    Flushed,
    /// Fast-Register: the access rights are invalid.
    #[error("invalid access rights specified")]
    InvalidAccessRights,
    /// Fast-Register: the First Byte Offset is invalid.
    #[error("invalid first byte offset (FBO)")]
    InvalidFirstByteOffset,
    /// Fast-Register: the length is invalid. Other operations: the length exceeds the RNIC's limit.
    #[error("invalid length")]
    InvalidLength,
    /// Fast-Register: an address of the list is invalid.
    #[error("invalid physical buffer list entry")]
    InvalidListEntry,
    /// The PDs differ, or the window is bound to another Queue Pair.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// Fast-Register: the size of the list's entries is invalid.
    #[error("invalid physical buffer size")]
    InvalidPhysicalBufferSize,
    /// Bind: the region's STag is invalid for a Bind.
    #[error("invalid region")]
    InvalidRegion,
    /// The STag does not exist, or is invalid for this operation.
    #[error("invalid STag")]
    InvalidStag,
    /// Fast-Register: the virtual address is invalid.
    #[error("invalid virtual address")]
    InvalidVirtualAddress,
    /// Bind: the STag does not belong to a window.
    #[error("invalid window")]
    InvalidWindow,
    /// The peer sent a Send with Invalidate for an STag that cannot be invalidated. The reason is
    /// the PD, the Queue Pair or the rights of the STag, or a window that is bound to its region.
    #[error("the STag to invalidate has an invalid PD or invalid access rights")]
    InvalidateRefused,
    /// Fast-Register: the list has more entries than the allocation of the STag allows.
    #[error("the physical buffer list is too long")]
    ListTooLong,
    /// Bind or Fast-Register: the STag is in Valid state.
    #[error("the STag is not in Invalid state")]
    NotInvalid,
    /// Fast-Register: the Queue Pair is not privileged.
    #[error("the QP is not in privileged mode")]
    NotPrivileged,
    /// The peer sent a Terminate that contains the request of this Read.
    #[error("remote termination error")]
    RemoteTermination,
    /// Read or Atomic Operation: the ORD is 0.
    #[error("this side cannot send a Read or Atomic Request, because its ORD is 0")]
    ZeroReadResources,
    /// TO plus length exceeds 2^64.
    #[error("the TO plus the length exceeds 2^64 (wrap error)")]
    Wrap,
}

impl From<AccessError> for CompletionStatus {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::BaseAndBounds => CompletionStatus::BaseAndBounds,
            AccessError::InvalidStag => CompletionStatus::InvalidStag,
            AccessError::NotAssociated => CompletionStatus::InvalidPdId,
            AccessError::Rights => CompletionStatus::AccessViolation,
            AccessError::Wrap => CompletionStatus::Wrap,
        }
    }
}

impl From<BindError> for CompletionStatus {
    fn from(error: BindError) -> Self {
        match error {
            BindError::AccessViolation => CompletionStatus::AccessViolation,
            BindError::BaseAndBounds => CompletionStatus::BaseAndBounds,
            BindError::InvalidPdId => CompletionStatus::InvalidPdId,
            BindError::InvalidRegion => CompletionStatus::InvalidRegion,
            BindError::InvalidWindow => CompletionStatus::InvalidWindow,
            BindError::NotInvalid => CompletionStatus::NotInvalid,
            BindError::Wrap => CompletionStatus::Wrap,
        }
    }
}

impl From<FastRegisterError> for CompletionStatus {
    fn from(error: FastRegisterError) -> Self {
        match error {
            FastRegisterError::InvalidStag => CompletionStatus::InvalidStag,
            FastRegisterError::InvalidPdId => CompletionStatus::InvalidPdId,
            FastRegisterError::NotInvalid => CompletionStatus::NotInvalid,
            FastRegisterError::Mapping(error) => match error {
                MappingError::AccessRights => CompletionStatus::InvalidAccessRights,
                MappingError::Entry => CompletionStatus::InvalidListEntry,
                MappingError::FirstByteOffset => CompletionStatus::InvalidFirstByteOffset,
                MappingError::Length => CompletionStatus::InvalidLength,
                MappingError::Size => CompletionStatus::InvalidPhysicalBufferSize,
                MappingError::TooLong => CompletionStatus::ListTooLong,
                MappingError::VirtualAddress => CompletionStatus::InvalidVirtualAddress,
            },
        }
    }
}

impl From<InvalidateError> for CompletionStatus {
    /// The status of a failed local invalidation. Figure 36 has no status for a region to which
    /// windows are bound. "Access Violation" is the closest status.
    fn from(error: InvalidateError) -> Self {
        match error {
            InvalidateError::InvalidStag => CompletionStatus::InvalidStag,
            InvalidateError::NoRight | InvalidateError::WindowsBound => CompletionStatus::AccessViolation,
            InvalidateError::NotAssociated => CompletionStatus::InvalidPdId,
        }
    }
}
