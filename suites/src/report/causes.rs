//! Groups of results with the same cause, for the HTML report and the page of a run. Failures have
//! the same cause if they violate the same requirements and the target did the same. Other results
//! have the same cause if their explanation is the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use weft_core::RequirementId;

use crate::model::{
    CaseKey, CaseResult, ExitCode, RequirementVerdict, Strength, Summary, Verdict, also_observed, stable,
};

/// Maximum number of results that a cause names.
const NAMED: usize = 3;

/// Results with the same cause.
pub struct Cause {
    /// The violated requirements. Empty for results without a decision.
    pub requirements: Vec<RequirementId>,
    /// Whether the violation was only observed in cases about other requirements.
    pub also_observed: bool,
    /// What the first result expected.
    pub expected: Option<String>,
    /// What was observed, or why there is no decision.
    pub text: String,
    /// The first results.
    pub named: Vec<CaseKey>,
    /// Number of results. 0 if the results are not known.
    pub results: usize,
}

impl Cause {
    /// Returns the number of results that are not named.
    #[must_use]
    pub fn more(&self) -> usize {
        self.results.saturating_sub(self.named.len())
    }

    fn of(requirements: Vec<RequirementId>, results: &[&CaseResult]) -> Self {
        let first = results.first();
        let text = first.map(|first| first.actual.as_ref().unwrap_or(&first.explanation).clone());
        Cause {
            requirements,
            also_observed: false,
            expected: first.and_then(|first| first.expected.clone()),
            text: text.unwrap_or_default(),
            named: results.iter().take(NAMED).map(|result| result.key.clone()).collect(),
            results: results.len(),
        }
    }
}

/// Returns the causes of the failures in `results`, then the violations that were observed in cases
/// about other requirements. Results that the baseline expects are left out. Causes with MUST
/// requirements are first, and causes with many results are before causes with few.
pub(super) fn failures<'a>(summary: &Summary, results: impl Iterator<Item = &'a CaseResult>) -> Vec<Cause> {
    let unexpected: Vec<&CaseResult> = results.filter(|result| summary.expects(result).is_none()).collect();
    let failed = unexpected.iter().copied().filter(|result| result.verdict == Verdict::Fail);
    let mut causes: Vec<Cause> = grouped(failed, CaseResult::own_signature)
        .into_iter()
        .map(|results| Cause::of(results.first().map(|first| violated(first)).unwrap_or_default(), &results))
        .collect();
    causes.sort_by_key(|cause| (strength(&cause.requirements), Reverse(cause.results)));
    let observed = also_observed(summary, unexpected.iter().copied());
    // A passed result may be unknown. Then only the summary has the violated requirement.
    let is_known = |id: &RequirementId| unexpected.iter().any(|result| result.failing().any(|failing| failing == *id));
    let is_unexpected = summary.exit_code != ExitCode::AsExpected;
    let others = summary.failing.iter().filter(|&id| is_unexpected && summary.expected.is_empty() && !is_known(id));
    let observed = observed.into_iter().chain(others.map(|id| (*id, Vec::new())));
    causes.extend(observed.map(|(id, results)| Cause {
        also_observed: true,
        expected: None,
        text: finding(id, &results),
        ..Cause::of(vec![id], &results)
    }));
    causes
}

/// Returns the results with this verdict, by their explanation. Results that the baseline expects
/// are left out. Causes with many results are first.
pub(super) fn explained<'a>(
    summary: &Summary,
    verdict: Verdict,
    results: impl Iterator<Item = &'a CaseResult>,
) -> Vec<Cause> {
    let of_verdict = results.filter(|result| result.verdict == verdict && summary.expects(result).is_none());
    let groups = grouped(of_verdict, |result| stable(&result.explanation));
    let mut causes: Vec<Cause> = groups
        .into_iter()
        .map(|results| Cause {
            expected: None,
            text: results.first().map(|first| first.explanation.clone()).unwrap_or_default(),
            ..Cause::of(Vec::new(), &results)
        })
        .collect();
    causes.sort_by_key(|cause| Reverse(cause.results));
    causes
}

/// Groups results by a text. The groups are in the order of their first results.
fn grouped<'a>(
    results: impl Iterator<Item = &'a CaseResult>,
    text: impl Fn(&CaseResult) -> String,
) -> Vec<Vec<&'a CaseResult>> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&CaseResult>> = Vec::new();
    for result in results {
        let place = *places.entry(text(result)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(result),
            None => groups.push(vec![result]),
        }
    }
    groups
}

/// Returns the violated requirements that the case is about. If there is none, returns the others.
fn violated(result: &CaseResult) -> Vec<RequirementId> {
    let is_violated = |judged: &&RequirementVerdict| judged.verdict == Verdict::Fail;
    let (own, others): (Vec<_>, Vec<_>) =
        result.requirements.iter().filter(is_violated).partition(|judged| !judged.also_observed);
    let shown = if own.is_empty() { others } else { own };
    shown.into_iter().map(|judged: &RequirementVerdict| judged.requirement).collect()
}

/// Returns the strength of the strongest requirement.
fn strength(requirements: &[RequirementId]) -> Option<Strength> {
    requirements.iter().map(|id| Strength::of(id.row())).min()
}

/// Returns the text of the monitor's first finding about a requirement.
fn finding(id: RequirementId, results: &[&CaseResult]) -> String {
    let mut findings = results.iter().flat_map(|result| &result.findings);
    let about = findings.find(|finding| finding.by_target && finding.requirement == id);
    about.map(|finding| finding.text.clone()).unwrap_or_default()
}
