//! Work Completions and their statuses (draft sections 8.2.3, 9.3.2.1 and Figure 36).

use weft_core::wire::rdmap::Immediate;

use super::work_request::Operation;
use crate::memory::{AccessError, BindError, FastRegisterError, InvalidateError, MappingError, QpId};

/// What Poll for Completion gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCompletion {
    /// The id of the work request; valid with every status.
    pub wr_id: u64,
    /// The Queue Pair on which it completed.
    pub qp: QpId,
    /// How it ended.
    pub status: CompletionStatus,
    /// What it was.
    pub operation: CompletedOperation,
    /// Octets that arrived: of a receive that succeeded.
    pub octets: u32,
    /// The STag that an inbound Send with Invalidate invalidated.
    pub invalidated: Option<u32>,
    /// Immediate Data that arrived instead of a Send.
    pub immediate: Option<Immediate>,
    /// What an Atomic Operation found.
    pub original_value: Option<u64>,
    /// A receive whose sender requested a solicited event.
    pub solicited: bool,
}

/// The kind of a completed work request.
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

/// How a work request ended (draft Figure 36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CompletionStatus {
    /// It did what it should.
    #[error("success")]
    Success,
    /// A right is missing.
    #[error("access violation")]
    AccessViolation,
    /// Outside the region.
    #[error("base and bounds violation")]
    BaseAndBounds,
    /// The Queue Pair left RTS before it was finished.
    #[error("flushed")]
    Flushed,
    /// Fast-Register: the rights.
    #[error("invalid access rights specified")]
    InvalidAccessRights,
    /// Fast-Register: the First Byte Offset.
    #[error("invalid FBO")]
    InvalidFirstByteOffset,
    /// Fast-Register: a wrong length. Other operations: more bytes than the RNIC supports.
    #[error("invalid length")]
    InvalidLength,
    /// Fast-Register: an address of the list.
    #[error("invalid physical buffer list entry")]
    InvalidListEntry,
    /// PDs, or the Queue Pair of a window, differ.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// Fast-Register: the size of the list's entries.
    #[error("invalid physical buffer size")]
    InvalidPhysicalBufferSize,
    /// Bind: the region.
    #[error("invalid region")]
    InvalidRegion,
    /// No such STag.
    #[error("invalid STag")]
    InvalidStag,
    /// Fast-Register: the virtual address.
    #[error("invalid virtual address")]
    InvalidVirtualAddress,
    /// Bind: the window.
    #[error("invalid window")]
    InvalidWindow,
    /// Invalidation by the peer: no right, or another PD or Queue Pair.
    #[error("STag to invalidate had invalid PD or access rights")]
    InvalidateRefused,
    /// Fast-Register: more entries than the STag has room for.
    #[error("physical buffer list too long")]
    ListTooLong,
    /// Bind and Fast-Register: the STag is Valid.
    #[error("STag not in Invalid state")]
    NotInvalid,
    /// Fast-Register on a Queue Pair that may not.
    #[error("QP not in privileged mode")]
    NotPrivileged,
    /// The peer's Terminate names this Read.
    #[error("remote termination error")]
    RemoteTermination,
    /// A Read with an ORD of zero.
    #[error("zero RDMA Read resources")]
    ZeroReadResources,
    /// TO and length exceed 2^64.
    #[error("wrap error")]
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
    /// The status of a failed local invalidation; Figure 36 has nothing closer for bound windows
    /// than "Access Violation".
    fn from(error: InvalidateError) -> Self {
        match error {
            InvalidateError::InvalidStag => CompletionStatus::InvalidStag,
            InvalidateError::NoRight | InvalidateError::WindowsBound => CompletionStatus::AccessViolation,
            InvalidateError::NotAssociated => CompletionStatus::InvalidPdId,
        }
    }
}
