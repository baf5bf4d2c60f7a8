//! A complete run as one document. It is the content of the JSON report, and the source of all
//! other reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseInfo, CaseResult, RunInfo, Summary};

/// A finished or cancelled run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The run.
    pub run: RunInfo,
    /// The selected cases, in any order.
    pub cases: Vec<CaseInfo>,
    /// The results, in the order in which the cases were run.
    pub results: Vec<CaseResult>,
    /// The summary.
    pub summary: Summary,
}

impl RunReport {
    /// Returns whether the headline of a target that is down explains this result: the result did
    /// not reach the target, and the baseline does not expect the result.
    pub(crate) fn is_down_for(&self, result: &CaseResult) -> bool {
        self.summary.target_down.is_some() && result.is_unreached() && self.summary.expects(result).is_none()
    }

    /// Returns the index of the result that shows the headline of a target that is down: the first
    /// result that the headline explains ([`is_down_for`](Self::is_down_for)).
    pub(crate) fn headline_at(&self) -> Option<usize> {
        self.results.iter().position(|result| self.is_down_for(result))
    }

    /// Returns the case that a result belongs to, if the report has the case.
    #[must_use]
    pub fn case(&self, result: &CaseResult) -> Option<&CaseInfo> {
        self.cases.iter().find(|case| case.id == result.key.case)
    }
}
