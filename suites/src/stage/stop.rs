//! The end of a case, and steps that do not work.

/// The case is decided. The log contains the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the case is decided")]
pub(crate) struct Stop;

/// The result of a step of the tester. A failed step does not always decide the case.
pub(crate) type Attempt<T = ()> = Result<T, StepFailure>;

/// Why a step of the tester did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepFailure {
    /// The step has decided the case. The log contains the decision.
    Decided,
    /// The reason for a failure that does not decide the case.
    Reason(String),
}

impl StepFailure {
    /// Adds `step`, a description of the failed step, to the reason.
    pub(in crate::stage) fn in_step(self, step: &str) -> Self {
        match self {
            StepFailure::Decided => StepFailure::Decided,
            StepFailure::Reason(why) => StepFailure::Reason(format!("{step}, {why}")),
        }
    }
}

impl From<Stop> for StepFailure {
    fn from(_: Stop) -> Self {
        StepFailure::Decided
    }
}

impl From<String> for StepFailure {
    fn from(why: String) -> Self {
        StepFailure::Reason(why)
    }
}

impl From<&str> for StepFailure {
    fn from(why: &str) -> Self {
        StepFailure::Reason(why.to_owned())
    }
}
