//! Groups of results with the same cause, for the reports and the page of a run. The groups of
//! failures are an estimate. Other results have the same cause if their explanation is the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use weft_core::RequirementId;

use super::probable::{Group, groups};
use crate::model::{CaseKey, CaseResult, ExitCode, RequirementVerdict, Strength, Summary, Verdict, stable};

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

    /// The cause of a group of failures. Results that failed describe it better than results that
    /// passed with an observed violation.
    fn of_group(group: &Group<'_>) -> Self {
        let (mut results, passed): (Vec<&CaseResult>, Vec<&CaseResult>) =
            group.results.iter().copied().partition(|result| result.verdict == Verdict::Fail);
        let also_observed = results.is_empty();
        results.extend(passed);
        let requirements = match (group.requirement, results.first()) {
            (Some(id), _) => vec![id],
            (None, first) => first.map(|first| violated(first)).unwrap_or_default(),
        };
        let mut cause = Cause { also_observed, ..Cause::of(requirements, &results) };
        if also_observed && let Some(id) = group.requirement {
            (cause.expected, cause.text) = (None, finding(id, &results));
        }
        cause
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

/// Returns the probable causes of the failures in `results`, and of the violations that were observed
/// in cases that passed. Results that the baseline expects are left out. Causes with MUST
/// requirements are first, and causes with many results are before causes with few. `results` may
/// lack results that passed.
pub(super) fn failures<'a>(summary: &Summary, results: impl Iterator<Item = &'a CaseResult>) -> Vec<Cause> {
    let unexpected: Vec<&CaseResult> = results.filter(|result| is_violating(summary, result)).collect();
    let mut causes: Vec<Cause> = groups(&unexpected).into_iter().map(|group| Cause::of_group(&group)).collect();
    let others = unknown(summary, &unexpected);
    causes.extend(others.map(|id| Cause { also_observed: true, ..Cause::of(vec![id], &[]) }));
    causes.sort_by_key(|cause| (strength(&cause.requirements), cause.also_observed, Reverse(cause.results)));
    causes
}

/// The numbers of failed cases and of violated requirements, without what the baseline expects.
pub(super) fn counts<'a>(summary: &Summary, results: impl Iterator<Item = &'a CaseResult>) -> (usize, usize) {
    let unexpected: Vec<&CaseResult> = results.filter(|result| is_violating(summary, result)).collect();
    let failed = unexpected.iter().filter(|result| result.verdict == Verdict::Fail).count();
    let mut violated: Vec<RequirementId> = unexpected.iter().flat_map(|result| result.failing()).collect();
    violated.extend(unknown(summary, &unexpected));
    violated.sort_unstable();
    violated.dedup();
    (failed, violated.len())
}

/// Returns whether the baseline does not expect the result, and the result failed or has a
/// violation.
fn is_violating(summary: &Summary, result: &CaseResult) -> bool {
    (result.verdict == Verdict::Fail || result.failing().next().is_some()) && summary.expects(result).is_none()
}

/// The violated requirements of results that are not known. A result that passed may be unknown.
/// Then only the summary has the violated requirement.
fn unknown<'s>(summary: &'s Summary, known: &'s [&CaseResult]) -> impl Iterator<Item = RequirementId> + 's {
    let is_unexpected = summary.exit_code != ExitCode::AsExpected && summary.expected.is_empty();
    let is_known = |id: &RequirementId| known.iter().any(|result| result.failing().any(|failing| failing == *id));
    summary.failing.iter().copied().filter(move |id| is_unexpected && !is_known(id))
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
