//! Groups failures by their probable cause: one defect of a target usually makes many cases fail.
//!
//! Failures of one defect often have a violated requirement or an observation in common ("it closed
//! the connection without a Terminate"). The search is greedy: the requirement or the observation
//! that most of the remaining failures have in common makes the next group. So the groups are few,
//! and each failure is in one group.
//!
//! **Limits.** The groups are an estimate. Two defects with the same effect are one group, and one
//! defect with several effects can be several groups.

use std::collections::BTreeMap;

use weft_core::RequirementId;

use crate::model::{CaseResult, Verdict};

/// What failures can have in common. If two of them fit the same number of failures, the greater
/// one makes the group: a requirement is more exact than an observation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Common {
    /// What was observed, without numbers.
    Observation(String),
    /// A violated requirement.
    Requirement(RequirementId),
}

/// Failures with the same probable cause, in the order of the run.
pub(super) struct Group<'a> {
    /// The requirement that all results violate, if it makes the group.
    pub(super) requirement: Option<RequirementId>,
    pub(super) results: Vec<&'a CaseResult>,
}

/// Groups results that failed, or in which the monitor observed a violation.
pub(super) fn groups<'a>(results: &[&'a CaseResult]) -> Vec<Group<'a>> {
    let mut indices: BTreeMap<Common, Vec<usize>> = BTreeMap::new();
    for (index, result) in results.iter().enumerate() {
        for common in commons(result) {
            indices.entry(common).or_default().push(index);
        }
    }
    let mut groups = Vec::new();
    // The last of several equal maxima is the greatest `Common`.
    while let Some((common, _)) = indices.iter().max_by_key(|(_, has)| has.len()).filter(|(_, has)| !has.is_empty()) {
        let common = common.clone();
        let members = indices.remove(&common).unwrap_or_default();
        indices.values_mut().for_each(|has| has.retain(|index| members.binary_search(index).is_err()));
        let requirement = match common {
            Common::Requirement(id) => Some(id),
            Common::Observation(_) => None,
        };
        let results = members.into_iter().filter_map(|index| results.get(index).copied()).collect();
        groups.push(Group { requirement, results });
    }
    groups
}

/// What a result can have in common with others.
fn commons(result: &CaseResult) -> Vec<Common> {
    let mut commons: Vec<Common> = result.failing().map(Common::Requirement).collect();
    if result.verdict == Verdict::Fail {
        let observed = result.actual.as_ref().unwrap_or(&result.explanation);
        commons.push(Common::Observation(without_numbers(observed)));
    }
    commons.sort_unstable();
    commons.dedup();
    commons
}

/// Returns the text with `#` in place of words that have a digit.
fn without_numbers(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.contains(|c: char| c.is_ascii_digit()) {
        true => "#",
        false => word,
    });
    words.collect::<Vec<&str>>().join(" ")
}
