//! What a script expects of the target.

use std::time::Duration;

use weft_core::RequirementId;

/// The part that all expectations share.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    /// The requirements that are violated if the expectation is not met. Without a requirement, the
    /// expectation is a preparation: if it is not met, the case is inconclusive.
    pub(crate) requirements: Vec<RequirementId>,
    /// The requirements that the monitor can judge if the expectation is met.
    pub(crate) shows: Vec<RequirementId>,
    /// Whether a late answer is a failure, because the requirement is about time.
    pub(crate) overdue_fails: bool,
    /// Time limit of the wait.
    pub(crate) within: Duration,
}

impl Expectation {
    /// Creates an expectation that is only a preparation.
    pub(crate) fn preparation(within: Duration) -> Self {
        Expectation { requirements: Vec::new(), shows: Vec::new(), overdue_fails: false, within }
    }

    /// Returns the ids of the requirements, for example `MPA-7.1.1-2, MPA-7.1.2-4`.
    pub(super) fn names(&self) -> String {
        self.requirements.iter().chain(&self.shows).map(|id| id.as_str()).collect::<Vec<_>>().join(", ")
    }
}
