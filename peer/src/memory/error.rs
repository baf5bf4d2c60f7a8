//! What can be wrong with memory: of a verb, of a work request, of an access.
//!
//! The first are Immediate Errors (draft Figure 33), the second completion statuses (Figure 36),
//! the third protection errors; only these know Terminate codes, which depend on how the access
//! came: RFC 5041 section 7.2 for tagged segments, RFC 5040 Figure 9 for Read Requests.

use weft_core::wire::rdmap::TerminateError;

/// The result of a memory management verb that failed (draft Figures 29 and 33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MemoryError {
    /// The RNIC has no more of the requested resource.
    #[error("insufficient resources")]
    InsufficientResources,
    /// Figure 18 forbids the combination, or a remote right is requested without the Remote Access
    /// Flag.
    #[error("invalid access rights")]
    InvalidAccessRights,
    /// The First Byte Offset is after the first physical buffer.
    #[error("invalid first byte offset")]
    InvalidFirstByteOffset,
    /// The length is 0, or more than the list holds.
    #[error("invalid length")]
    InvalidLength,
    /// The PD does not exist.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// An address is not aligned to the page size, or names memory that does not exist.
    #[error("invalid physical buffer list entry")]
    InvalidPhysicalBufferListEntry,
    /// Not a size that the RNIC supports in its mode.
    #[error("invalid physical buffer size")]
    InvalidPhysicalBufferSize,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// No such STag, or one of another kind or in another state than the verb needs.
    #[error("invalid STag index")]
    InvalidStagIndex,
    /// The virtual address does not fit the First Byte Offset, or the region would wrap around.
    #[error("invalid virtual address")]
    InvalidVirtualAddress,
    /// A Queue Pair, Shared Receive Queue, region or window belongs to the PD.
    #[error("the protection domain is in use")]
    PdInUse,
    /// Windows are bound to the region.
    #[error("memory windows are still bound to the region")]
    WindowsStillBound,
}

/// A fault of a physical buffer list, its addressing or the rights that it should get.
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
    /// The list has more entries than the STag, or the RNIC, can hold.
    #[error("physical buffer list too long")]
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

/// Why a Fast-Register failed (draft Figure 36). Whether the Queue Pair may do it at all is not
/// known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FastRegisterError {
    /// No Non-Shared region's STag.
    #[error("invalid STag")]
    InvalidStag,
    /// The STag's PD is not the Queue Pair's.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// The STag is Valid.
    #[error("STag not in Invalid state")]
    NotInvalid,
    /// The list, its addressing or the rights.
    #[error(transparent)]
    Mapping(#[from] MappingError),
}

/// Why a Bind failed (draft Figure 36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BindError {
    /// The region does not permit windows, or Figure 20 does not permit the rights.
    #[error("access violation")]
    AccessViolation,
    /// The window is not within the region.
    #[error("base and bounds violation")]
    BaseAndBounds,
    /// Window, region and Queue Pair are not of one PD.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// No Valid, VA based region of that STag.
    #[error("invalid region")]
    InvalidRegion,
    /// No window's STag.
    #[error("invalid window")]
    InvalidWindow,
    /// The window is Valid.
    #[error("STag not in Invalid state")]
    NotInvalid,
    /// The window would wrap around the end of the address space.
    #[error("wrap error")]
    Wrap,
}

/// Why an STag was not invalidated (draft Figures 23 and 36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum InvalidateError {
    /// Unknown, STag 0, of a Shared region, or with another Key.
    #[error("invalid STag")]
    InvalidStag,
    /// A peer requested access, and the STag or the Queue Pair has no remote right.
    #[error("no right to invalidate")]
    NoRight,
    /// The region's or Invalid window's PD is not the Queue Pair's, or the Valid window is bound to
    /// another Queue Pair.
    #[error("invalid PD or QP ID")]
    NotAssociated,
    /// Windows are bound to the region.
    #[error("memory windows are still bound to the region")]
    WindowsBound,
}

impl InvalidateError {
    /// The Terminate code towards a peer that requested it (draft Figure 23).
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

/// A protection error: why octets may not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AccessError {
    /// Some octet lies outside the region or window.
    #[error("base and bounds violation")]
    BaseAndBounds,
    /// No Valid STag with this Index and Key, or not of a kind for this use.
    #[error("invalid STag")]
    InvalidStag,
    /// The region's PD is not that of the stream, or the window is bound to another Queue Pair.
    #[error("STag not associated with the stream")]
    NotAssociated,
    /// The right is missing.
    #[error("access rights violation")]
    Rights,
    /// Offset and length exceed 2^64.
    #[error("TO wrap")]
    Wrap,
}

impl AccessError {
    /// The code for a tagged segment (RFC 5041 section 7.2). DDP has none for rights; draft Figure
    /// 24 takes "not associated" for them.
    #[must_use]
    pub const fn tagged_code(self) -> TerminateError {
        match self {
            AccessError::BaseAndBounds => TerminateError::DDP_TAGGED_BASE_OR_BOUNDS,
            AccessError::InvalidStag => TerminateError::DDP_TAGGED_INVALID_STAG,
            AccessError::NotAssociated | AccessError::Rights => TerminateError::DDP_TAGGED_STAG_NOT_ASSOCIATED,
            AccessError::Wrap => TerminateError::DDP_TAGGED_TO_WRAP,
        }
    }

    /// The code for a Read Request or an Atomic Request (RFC 5040 Figure 9).
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
