//! An expectation of the target.

use std::time::Duration;

use weft_core::RequirementId;

use crate::model::SourceLocation;

/// The common part of all expectations.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    /// The requirements that are violated if it is not met. Without a requirement, the expectation is
    /// preparation: if it is not met, the case is inconclusive.
    pub(crate) requirements: Vec<RequirementId>,
    /// The requirements that the monitor can judge if it is met.
    pub(crate) shows: Vec<RequirementId>,
    /// The requirement is about time: a late answer is a failure.
    pub(crate) overdue_fails: bool,
    /// How long to wait.
    pub(crate) within: Duration,
    /// Its line in the script.
    pub(crate) at: Option<SourceLocation>,
}

impl Expectation {
    /// An expectation that is only preparation.
    pub(crate) fn preparation(within: Duration, at: Option<&SourceLocation>) -> Self {
        Expectation { requirements: Vec::new(), shows: Vec::new(), overdue_fails: false, within, at: at.cloned() }
    }

    /// `MPA-7.1.1-2, MPA-7.1.2-4`.
    pub(super) fn names(&self) -> String {
        self.requirements.iter().chain(&self.shows).map(|id| id.as_str()).collect::<Vec<_>>().join(", ")
    }
}
