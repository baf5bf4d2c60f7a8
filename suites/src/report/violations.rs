//! The violated requirements at the top of the HTML report, each with the results that show it.

use std::collections::BTreeMap;

use weft_core::{Requirement, RequirementId};

use crate::model::{CaseResult, RunReport};

/// Maximum number of results that are named. Further results are only counted.
const NAMED: usize = 3;

/// A violated requirement.
pub(super) struct ViolatedRequirement {
    pub(super) row: &'static Requirement,
    pub(super) results: Vec<ViolatingResult>,
    /// Number of results that are not named.
    pub(super) more: usize,
}

/// A result that shows the violation.
pub(super) struct ViolatingResult {
    pub(super) href: String,
    pub(super) name: String,
}

/// Returns the violated requirements in catalogue order. For each requirement, cases about it come
/// before other cases in which the monitor observed a violation of it.
pub(super) fn violated_requirements(
    report: &RunReport,
    href: impl Fn(&CaseResult) -> String,
) -> Vec<ViolatedRequirement> {
    let mut by: BTreeMap<RequirementId, Vec<(bool, &CaseResult)>> = BTreeMap::new();
    for result in &report.results {
        for id in result.failing() {
            let also_observed =
                result.requirements.iter().any(|judged| judged.requirement == id && judged.also_observed);
            by.entry(id).or_default().push((also_observed, result));
        }
    }
    let one = |(id, mut results): (RequirementId, Vec<(bool, &CaseResult)>)| {
        results.sort_by_key(|(also_observed, _)| *also_observed);
        let shown =
            |(_, result): &(bool, &CaseResult)| ViolatingResult { href: href(result), name: result.key.to_string() };
        ViolatedRequirement {
            row: id.row(),
            results: results.iter().take(NAMED).map(shown).collect(),
            more: results.len().saturating_sub(NAMED),
        }
    };
    by.into_iter().map(one).collect()
}
