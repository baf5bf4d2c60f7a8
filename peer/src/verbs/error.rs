//! Immediate Errors: the results of verbs that failed (draft Figures 28 to 35). Their subject is
//! unchanged then; the one exception is RI-Reregister.
//!
//! The statuses of memory management are [`MemoryError`](crate::memory::MemoryError).

/// Open, Query and Close RNIC (draft Figure 28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RnicError {
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// No RNIC has this name.
    #[error("invalid modifier: no RNIC of this name")]
    InvalidName,
    /// It is open already.
    #[error("RNIC in use")]
    InUse,
    /// The node's RNICs have Page Mode alone.
    #[error("Block List mode not supported")]
    BlockModeNotSupported,
    /// As many RNICs of the node are open as can be.
    #[error("insufficient resources")]
    InsufficientResources,
}

/// Completion Queues (draft Figure 30).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CqError {
    /// Nothing to poll.
    #[error("CQ empty")]
    Empty,
    /// As many CQs as there may be.
    #[error("insufficient resources")]
    InsufficientResources,
    /// A Work Queue is associated with it.
    #[error("CQ in use")]
    InUse,
    /// No such CQ on this RNIC.
    #[error("invalid CQ handle")]
    InvalidCqHandle,
    /// No such Completion Event Handler.
    #[error("invalid Completion Event Handler Identifier")]
    InvalidHandler,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// More completions are on it than it would hold.
    #[error("shrink failed, too many elements present")]
    ShrinkFailed,
    /// More than a CQ may hold.
    #[error("number of CQEs exceeds capability")]
    TooManyEntries,
}

/// Shared Receive Queues (draft Figure 31).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SrqError {
    /// As many S-RQs as there may be.
    #[error("insufficient resources")]
    InsufficientResources,
    /// The size is less than an armed limit.
    #[error("invalid input modifier")]
    InvalidModifier,
    /// No such PD.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// No such S-RQ on this RNIC.
    #[error("invalid S-RQ handle")]
    InvalidSrqHandle,
    /// The limit is more than the size.
    #[error("S-RQ limit out of range")]
    LimitOutOfRange,
    /// Queue Pairs use it.
    #[error("Queue Pairs are still associated")]
    QpsStillAssociated,
    /// More WRs are outstanding than it would hold.
    #[error("shrink failed, too many elements present")]
    ShrinkFailed,
    /// More scatter elements than a WR may have.
    #[error("maximum SGEs exceeds capability")]
    TooManySges,
    /// More WRs than an S-RQ may hold.
    #[error("maximum WRs exceeds capability")]
    TooManyWrs,
}

/// Queue Pairs (draft Figure 32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum QpError {
    /// Figures 4 and 5 do not allow the attribute with this transition.
    #[error("cannot change QP attribute")]
    CannotChangeAttribute,
    /// As many Queue Pairs as there may be.
    #[error("insufficient resources")]
    InsufficientResources,
    /// No such CQ on this RNIC.
    #[error("invalid CQ handle")]
    InvalidCqHandle,
    /// No such stream on this RNIC, or it is in use or gone.
    #[error("invalid LLP stream handle")]
    InvalidLlpStreamHandle,
    /// A required attribute is missing, or one has a value that it cannot have.
    #[error("invalid modifier")]
    InvalidModifier,
    /// No such PD.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// No such Queue Pair on this RNIC.
    #[error("invalid QP handle")]
    InvalidQpHandle,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// No such S-RQ on this RNIC.
    #[error("invalid S-RQ handle")]
    InvalidSrqHandle,
    /// Figure 6 has no such transition.
    #[error("invalid QP state change")]
    InvalidStateChange,
    /// More than a Queue Pair may have.
    #[error("IRD exceeds capability")]
    IrdExceeds,
    /// More than a Queue Pair may have.
    #[error("ORD exceeds capability")]
    OrdExceeds,
    /// The limit is more than the S-RQ holds.
    #[error("QP RQ limit out of range")]
    RqLimitOutOfRange,
    /// More WRs are outstanding than the queue would hold.
    #[error("shrink failed, too many elements present")]
    ShrinkFailed,
    /// More gather or scatter elements than a WR may have.
    #[error("maximum SGEs exceeds capability")]
    TooManySges,
    /// More WRs than a queue may hold.
    #[error("maximum WRs exceeds capability")]
    TooManyWrs,
    /// Valid windows are bound to it.
    #[error("memory windows are still bound")]
    WindowsStillBound,
}

/// Why a work request was not posted (draft Figure 34).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PostStatus {
    /// An STag that the operation cannot have, or an address where none belongs.
    #[error("invalid modifier")]
    InvalidModifier,
    /// The Queue Pair was not made for it.
    #[error("invalid operation type")]
    InvalidOperation,
    /// No such Queue Pair on this RNIC.
    #[error("invalid QP handle")]
    InvalidQpHandle,
    /// Terminate, Error and Closing take no work.
    #[error("invalid QP state")]
    InvalidQpState,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// More elements than the queue was made for.
    #[error("invalid scatter/gather list format")]
    InvalidSglFormat,
    /// More than 2^32 - 1 octets.
    #[error("invalid scatter/gather list length")]
    InvalidSglLength,
    /// No such S-RQ on this RNIC.
    #[error("invalid S-RQ handle")]
    InvalidSrqHandle,
    /// Receives go to the S-RQ.
    #[error("the RQ is associated with an S-RQ")]
    RqAssociatedWithSrq,
    /// The queue is full.
    #[error("too many work requests posted")]
    TooManyWrs,
}

/// A list of work requests that was posted only in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("work request {posted} of the list: {status}")]
pub struct PostError {
    /// How many were posted: those before the one at fault.
    pub posted: usize,
    /// What is wrong with the next one.
    pub status: PostStatus,
}

/// Event handlers (draft Figure 35).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EventError {
    /// As many handlers as there may be.
    #[error("insufficient resources")]
    InsufficientResources,
    /// No such CQ on this RNIC.
    #[error("invalid CQ handle")]
    InvalidCqHandle,
    /// No such Completion Event Handler.
    #[error("invalid Completion Event Handler Identifier")]
    InvalidHandler,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
}
