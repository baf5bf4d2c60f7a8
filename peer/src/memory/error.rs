//! Errors of verbs, of Work Requests and of memory accesses.
//!
//! An error of a verb is an Immediate Error (draft-hilland-rddp-verbs Figure 33). An error of a
//! Work Request is a completion status (Figure 36). An error of an access is a protection error.
//!
//! If an inbound message is rejected, [`AccessError`] and [`InvalidateError`] provide the code of
//! the Terminate. For a rejected access, this code depends on the message. Tagged segments use the
//! codes of RFC 5041 section 7.2. Read Requests use the codes of RFC 5040 Figure 9.

use weft_core::wire::rdmap::TerminateError;

/// Error of a memory management verb (draft Figures 29 and 33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MemoryError {
    /// The RNIC has no more of the requested resource.
    #[error("insufficient resources")]
    InsufficientResources,
    /// Figure 18 forbids the combination of rights, or the verb requests a remote right without the
    /// Remote Access Flag.
    #[error("invalid access rights")]
    InvalidAccessRights,
    /// The First Byte Offset is not within the first physical buffer.
    #[error("invalid first byte offset")]
    InvalidFirstByteOffset,
    /// The length is 0, or exceeds the length of the buffer list.
    #[error("invalid length")]
    InvalidLength,
    /// The PD does not exist.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// A physical address is not aligned to the page size, or refers to memory that does not exist.
    #[error("invalid physical buffer list entry")]
    InvalidPhysicalBufferListEntry,
    /// The RNIC's list mode does not support this size of a list entry.
    #[error("invalid physical buffer size")]
    InvalidPhysicalBufferSize,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// The STag does not exist, or the verb does not accept its kind or state.
    #[error("invalid STag index")]
    InvalidStagIndex,
    /// The virtual address does not match the First Byte Offset, or the region would wrap around
    /// the end of the address space.
    #[error("invalid virtual address")]
    InvalidVirtualAddress,
    /// A Queue Pair, Shared Receive Queue, region or window belongs to the PD.
    #[error("the protection domain is in use")]
    PdInUse,
    /// Windows are bound to the region.
    #[error("memory windows are still bound to the region")]
    WindowsStillBound,
}

/// Fault of a Physical Buffer List, of its base address, or of the requested rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MappingError {
    /// See [`MemoryError::InvalidAccessRights`].
    #[error("invalid access rights")]
    AccessRights,
    /// See [`MemoryError::InvalidPhysicalBufferListEntry`].
    #[error("invalid physical buffer list entry")]
    Entry,
    /// See [`MemoryError::InvalidFirstByteOffset`].
    #[error("invalid first byte offset")]
    FirstByteOffset,
    /// See [`MemoryError::InvalidLength`].
    #[error("invalid length")]
    Length,
    /// See [`MemoryError::InvalidPhysicalBufferSize`].
    #[error("invalid physical buffer size")]
    Size,
    /// The list has more entries than the STag or the RNIC allows.
    #[error("the physical buffer list is too long")]
    TooLong,
    /// See [`MemoryError::InvalidVirtualAddress`].
    #[error("invalid virtual address")]
    VirtualAddress,
}

impl From<MappingError> for MemoryError {
    fn from(error: MappingError) -> Self {
        match error {
            MappingError::AccessRights => MemoryError::InvalidAccessRights,
            MappingError::Entry => MemoryError::InvalidPhysicalBufferListEntry,
            MappingError::FirstByteOffset => MemoryError::InvalidFirstByteOffset,
            MappingError::Length => MemoryError::InvalidLength,
            MappingError::Size => MemoryError::InvalidPhysicalBufferSize,
            MappingError::TooLong => MemoryError::InsufficientResources,
            MappingError::VirtualAddress => MemoryError::InvalidVirtualAddress,
        }
    }
}

/// Error of a Fast-Register (draft Figure 36). The layer above this module checks whether the Queue
/// Pair may use Fast-Register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FastRegisterError {
    /// The STag does not belong to a Non-Shared region.
    #[error("invalid STag")]
    InvalidStag,
    /// The STag and the Queue Pair belong to different PDs.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// The STag is Valid.
    #[error("the STag is not in Invalid state")]
    NotInvalid,
    /// Fault of the buffer list, of its base address, or of the rights.
    #[error(transparent)]
    Mapping(#[from] MappingError),
}

/// Error of a Bind (draft Figure 36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BindError {
    /// The region does not permit windows, or Figure 20 forbids the rights.
    #[error("access violation")]
    AccessViolation,
    /// The window is not within the region.
    #[error("base and bounds violation")]
    BaseAndBounds,
    /// Window, region and Queue Pair do not belong to the same PD.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// The STag does not belong to a Valid, VA based region.
    #[error("invalid region")]
    InvalidRegion,
    /// The STag does not belong to a window.
    #[error("invalid window")]
    InvalidWindow,
    /// The window is Valid.
    #[error("the STag is not in Invalid state")]
    NotInvalid,
    /// The window would wrap around the end of the address space.
    #[error("the window exceeds the end of the address space (wrap error)")]
    Wrap,
}

/// Reason why an STag cannot be invalidated (draft Figures 23 and 36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum InvalidateError {
    /// The STag is unknown, is STag 0, has a wrong Key, or belongs to a Shared region.
    #[error("invalid STag")]
    InvalidStag,
    /// A peer requested the invalidation, but either the STag or the Queue Pair has no remote
    /// right.
    #[error("the STag or the Queue Pair has no remote access right")]
    NoRight,
    /// For a region or an Invalid window: the PD differs from the PD of the Queue Pair. For a Valid
    /// window: it is bound to another Queue Pair.
    #[error("the STag belongs to another PD or QP")]
    NotAssociated,
    /// Windows are bound to the region.
    #[error("memory windows are still bound to the region")]
    WindowsBound,
}

impl InvalidateError {
    /// Code of the Terminate to the peer that requested the invalidation (draft Figure 23).
    #[must_use]
    pub const fn code(self) -> TerminateError {
        match self {
            InvalidateError::InvalidStag => TerminateError::RDMAP_INVALID_STAG,
            InvalidateError::NoRight => TerminateError::RDMAP_ACCESS_RIGHTS,
            InvalidateError::NotAssociated => TerminateError::RDMAP_STAG_NOT_ASSOCIATED,
            InvalidateError::WindowsBound => TerminateError::RDMAP_PROTECTION_CANNOT_INVALIDATE,
        }
    }
}

/// Protection error: reason why an access is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AccessError {
    /// Some bytes are outside the region or window.
    #[error("base and bounds violation")]
    BaseAndBounds,
    /// No Valid STag has this Index and Key, or the STag's kind does not permit this access.
    #[error("invalid STag")]
    InvalidStag,
    /// The region belongs to another PD than the stream, or the window is bound to another Queue
    /// Pair.
    #[error("the STag is not associated with the stream")]
    NotAssociated,
    /// The region or window does not grant the right.
    #[error("access rights violation")]
    Rights,
    /// Offset plus length exceeds 2^64.
    #[error("the TO plus the length exceeds 2^64 (TO wrap)")]
    Wrap,
}

impl AccessError {
    /// Code of the Terminate for a tagged segment (RFC 5041 section 7.2). DDP has no code for
    /// missing rights. For missing rights, draft Figure 24 uses "not associated".
    #[must_use]
    pub const fn tagged_code(self) -> TerminateError {
        match self {
            AccessError::BaseAndBounds => TerminateError::DDP_TAGGED_BASE_OR_BOUNDS,
            AccessError::InvalidStag => TerminateError::DDP_TAGGED_INVALID_STAG,
            AccessError::NotAssociated | AccessError::Rights => TerminateError::DDP_TAGGED_STAG_NOT_ASSOCIATED,
            AccessError::Wrap => TerminateError::DDP_TAGGED_TO_WRAP,
        }
    }

    /// Code of the Terminate for a Read Request or an Atomic Request (RFC 5040 Figure 9).
    #[must_use]
    pub const fn request_code(self) -> TerminateError {
        match self {
            AccessError::BaseAndBounds => TerminateError::RDMAP_BASE_OR_BOUNDS,
            AccessError::InvalidStag => TerminateError::RDMAP_INVALID_STAG,
            AccessError::NotAssociated => TerminateError::RDMAP_STAG_NOT_ASSOCIATED,
            AccessError::Rights => TerminateError::RDMAP_ACCESS_RIGHTS,
            AccessError::Wrap => TerminateError::RDMAP_TO_WRAP,
        }
    }
}
