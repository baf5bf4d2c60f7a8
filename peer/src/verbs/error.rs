//! Immediate Errors: the results of failed verbs (draft-hilland-rddp-verbs Figures 28 to 35). A
//! failed verb changes nothing. There are two exceptions: RI-Reregister, and posting a list of Work
//! Requests. If a Work Request of the list is rejected, the Work Requests that precede it in the
//! list are posted.
//!
//! The errors of the memory management verbs are [`MemoryError`](crate::memory::MemoryError).

/// Errors of the verbs Open RNIC, Query RNIC and Close RNIC (draft Figure 28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RnicError {
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// No RNIC has this name.
    #[error("no RNIC has this name (invalid modifier)")]
    InvalidName,
    /// The RNIC is already open.
    #[error("the RNIC is in use")]
    InUse,
    /// The node's RNICs support only Page Mode.
    #[error("the RNIC does not support Block List mode")]
    BlockModeNotSupported,
    /// The node's limit of open RNICs is reached.
    #[error("insufficient resources")]
    InsufficientResources,
}

/// Errors of the verbs for Completion Queues (draft Figure 30).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CqError {
    /// The CQ has no completions.
    #[error("the CQ is empty")]
    Empty,
    /// The RNIC's limit of CQs is reached.
    #[error("insufficient resources")]
    InsufficientResources,
    /// A Work Queue uses the CQ.
    #[error("the CQ is in use")]
    InUse,
    /// This RNIC has no such CQ.
    #[error("invalid CQ handle")]
    InvalidCqHandle,
    /// This RNIC has no such Completion Event Handler.
    #[error("invalid Completion Event Handler Identifier")]
    InvalidHandler,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// The CQ has more completions than the new size allows.
    #[error("cannot shrink the CQ, because it has more completions than the new size allows")]
    ShrinkFailed,
    /// The size exceeds the RNIC's limit for a CQ.
    #[error("the number of CQEs exceeds the capability of the RNIC")]
    TooManyEntries,
}

/// Errors of the verbs for Shared Receive Queues (draft Figure 31).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SrqError {
    /// The RNIC's limit of S-RQs is reached.
    #[error("insufficient resources")]
    InsufficientResources,
    /// The new size is less than an armed limit, or the RNIC cannot resize queues.
    #[error("invalid input modifier")]
    InvalidModifier,
    /// This RNIC has no such PD.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// This RNIC has no such S-RQ.
    #[error("invalid S-RQ handle")]
    InvalidSrqHandle,
    /// The limit is greater than the size of the S-RQ.
    #[error("the S-RQ limit is out of range")]
    LimitOutOfRange,
    /// Queue Pairs use the S-RQ.
    #[error("Queue Pairs are still associated with the S-RQ")]
    QpsStillAssociated,
    /// More WRs are outstanding than the new size allows.
    #[error("cannot shrink the S-RQ, because it has more outstanding WRs than the new size allows")]
    ShrinkFailed,
    /// The number of scatter elements exceeds the RNIC's limit for a WR.
    #[error("the maximum number of SGEs exceeds the capability of the RNIC")]
    TooManySges,
    /// The number of WRs exceeds the RNIC's limit for an S-RQ.
    #[error("the maximum number of WRs exceeds the capability of the RNIC")]
    TooManyWrs,
}

/// Errors of the verbs for Queue Pairs (draft Figure 32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum QpError {
    /// Figures 4 and 5 do not allow this attribute in the transition, or the RNIC does not support
    /// the change.
    #[error("cannot change a QP attribute")]
    CannotChangeAttribute,
    /// The RNIC's limit of Queue Pairs is reached, or its pool of IRD or ORD is empty.
    #[error("insufficient resources")]
    InsufficientResources,
    /// This RNIC has no such CQ.
    #[error("invalid CQ handle")]
    InvalidCqHandle,
    /// This RNIC has no such stream, or the stream is in use or closed.
    #[error("invalid LLP stream handle")]
    InvalidLlpStreamHandle,
    /// An attribute that the transition requires is missing.
    #[error("invalid modifier")]
    InvalidModifier,
    /// This RNIC has no such PD.
    #[error("invalid PD ID")]
    InvalidPdId,
    /// This RNIC has no such Queue Pair.
    #[error("invalid QP handle")]
    InvalidQpHandle,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// This RNIC has no such S-RQ.
    #[error("invalid S-RQ handle")]
    InvalidSrqHandle,
    /// The draft has no such state transition.
    #[error("invalid QP state change")]
    InvalidStateChange,
    /// The IRD exceeds the RNIC's limit for a Queue Pair.
    #[error("the IRD exceeds the capability of the RNIC")]
    IrdExceeds,
    /// The ORD exceeds the RNIC's limit for a Queue Pair.
    #[error("the ORD exceeds the capability of the RNIC")]
    OrdExceeds,
    /// The limit is greater than the size of the S-RQ.
    #[error("the RQ limit of the QP is out of range")]
    RqLimitOutOfRange,
    /// More WRs are outstanding than the new size allows.
    #[error("cannot shrink the queue, because it has more outstanding WRs than the new size allows")]
    ShrinkFailed,
    /// The number of gather or scatter elements exceeds the RNIC's limit for a WR.
    #[error("the maximum number of SGEs exceeds the capability of the RNIC")]
    TooManySges,
    /// The number of WRs exceeds the RNIC's limit for a queue.
    #[error("the maximum number of WRs exceeds the capability of the RNIC")]
    TooManyWrs,
    /// Valid windows are bound to the Queue Pair.
    #[error("memory windows are still bound to the QP")]
    WindowsStillBound,
}

/// Reason why a Work Request is rejected (draft Figure 34).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PostStatus {
    /// The operation does not allow this fence, or a Read with Invalidate Local STag uses STag 0.
    #[error("invalid modifier")]
    InvalidModifier,
    /// The Queue Pair was created without support for the operation.
    #[error("invalid operation type")]
    InvalidOperation,
    /// This RNIC has no such Queue Pair.
    #[error("invalid QP handle")]
    InvalidQpHandle,
    /// The Queue Pair is in Terminate, Error or Closing, and accepts no work.
    #[error("invalid QP state")]
    InvalidQpState,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
    /// The number of elements exceeds the limit of the Queue Pair or S-RQ.
    #[error("invalid scatter/gather list format")]
    InvalidSglFormat,
    /// The total length exceeds 2^32 - 1 bytes.
    #[error("invalid scatter/gather list length")]
    InvalidSglLength,
    /// This RNIC has no such S-RQ.
    #[error("invalid S-RQ handle")]
    InvalidSrqHandle,
    /// The Queue Pair has an S-RQ. Receives must be posted to the S-RQ.
    #[error("the RQ is associated with an S-RQ")]
    RqAssociatedWithSrq,
    /// The queue is full.
    #[error("too many work requests are posted")]
    TooManyWrs,
}

/// A Work Request of a list was rejected. Only the Work Requests that precede it in the list were
/// posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the work request at index {posted} of the list was rejected: {status}")]
pub struct PostError {
    /// Number of Work Requests that were posted.
    pub posted: usize,
    /// Reason why the Work Request at index `posted` was rejected.
    pub status: PostStatus,
}

/// Errors of the verbs for event handlers (draft Figure 35).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EventError {
    /// The RNIC's limit of handlers is reached.
    #[error("insufficient resources")]
    InsufficientResources,
    /// This RNIC has no such CQ.
    #[error("invalid CQ handle")]
    InvalidCqHandle,
    /// This RNIC has no such Completion Event Handler.
    #[error("invalid Completion Event Handler Identifier")]
    InvalidHandler,
    /// The RNIC is closed.
    #[error("invalid RNIC handle")]
    InvalidRnicHandle,
}
