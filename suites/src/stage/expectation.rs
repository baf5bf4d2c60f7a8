//! An expectation of the target.

use std::time::Duration;

use weft_core::RequirementId;

use crate::model::SourceLocation;

/// What every expectation has.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    /// The requirements that are broken when it is not met. Without one the expectation only
    /// prepares: not met, the case is inconclusive.
    pub(crate) requirements: Vec<RequirementId>,
    /// The requirements whose rules in the monitor have something to judge when it is met.
    pub(crate) shows: Vec<RequirementId>,
    /// Time is what the requirement is about: too late is a failure.
    pub(crate) overdue_fails: bool,
    /// How long to wait.
    pub(crate) within: Duration,
    /// Where it stands in the script.
    pub(crate) at: Option<SourceLocation>,
}

impl Expectation {
    /// One that only prepares.
    pub(crate) fn preparation(within: Duration, at: Option<&SourceLocation>) -> Self {
        Expectation { requirements: Vec::new(), shows: Vec::new(), overdue_fails: false, within, at: at.cloned() }
    }

    /// `MPA-7.1.1-2, MPA-7.1.2-4`.
    pub(super) fn names(&self) -> String {
        self.requirements.iter().chain(&self.shows).map(|id| id.as_str()).collect::<Vec<_>>().join(", ")
    }
}
