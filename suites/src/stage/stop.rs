//! The end of a case.

/// The case is decided. The log contains the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the case is decided")]
pub(crate) struct Stop;
