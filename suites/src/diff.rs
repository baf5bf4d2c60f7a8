//! Compares two runs: `before` and `after`.
//!
//! Verdicts of cases and findings of the monitor are compared separately. A target may violate one
//! rule in every case, whatever the case is about. If only the later run shows this violation, it
//! is one difference, not a difference of every case.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use weft_core::RequirementId;

use crate::model::{CaseKey, CaseResult, ExitCode, RunReport, Verdict};

/// One case with a different outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// The variant of the case.
    pub key: CaseKey,
    /// Verdict in the earlier run. `None` if the case was not in that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Verdict>,
    /// Verdict in the later run. `None` if the case was not in that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Verdict>,
    /// The signature of the later result, or a note that the later run does not have the case.
    pub text: String,
}

/// A requirement that the monitor observed to be violated in cases about other requirements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Observed")]
pub struct ObservedViolation {
    /// The requirement.
    #[schemars(with = "String")]
    pub requirement: RequirementId,
    /// Number of cases with this observation.
    pub cases: usize,
}

/// The differences between two runs. Each case is in one list at most.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Diff {
    /// Cases that fail in the later run and did not fail in the earlier run. Includes cases that
    /// the earlier run did not have.
    pub newly_failing: Vec<Change>,
    /// Cases that fail in both runs, in different ways.
    pub failing_otherwise: Vec<Change>,
    /// Cases that failed in the earlier run, and pass in the later run.
    pub fixed: Vec<Change>,
    /// Cases that were decided in the earlier run. In the later run they are inconclusive, or an
    /// error of the tester.
    pub newly_undecided: Vec<Change>,
    /// Cases that were inconclusive or an error of the tester in the earlier run, and pass in the
    /// later run.
    pub decided: Vec<Change>,
    /// Cases that ran in the earlier run, and are not applicable or unimplemented in the later run.
    pub newly_not_applicable: Vec<Change>,
    /// Cases that are only in the earlier run.
    pub not_run: Vec<Change>,
    /// Cases that do not fail in the later run. The earlier run did not have these cases, or did
    /// not exercise them.
    pub added: Vec<Change>,
    /// Requirements whose violation was observed only in the later run.
    pub newly_observed: Vec<ObservedViolation>,
    /// Requirements whose violation was observed only in the earlier run. The later run also ran at
    /// least one of the cases in which the earlier run observed the violation.
    pub no_longer_observed: Vec<ObservedViolation>,
    /// Number of cases with the same outcome.
    pub same: usize,
}

impl Diff {
    /// Compares two runs.
    #[must_use]
    pub fn of(before: &RunReport, after: &RunReport) -> Self {
        let earlier: BTreeMap<&CaseKey, &CaseResult> =
            before.results.iter().map(|result| (&result.key, result)).collect();
        let mut diff = Diff::default();
        for result in &after.results {
            diff.add(earlier.get(&result.key).copied(), result);
        }
        let later: BTreeSet<&CaseKey> = after.results.iter().map(|result| &result.key).collect();
        for result in &before.results {
            if !later.contains(&result.key) {
                let text = "not in the later run".to_owned();
                diff.not_run.push(Change { key: result.key.clone(), before: Some(result.verdict), after: None, text });
            }
        }
        let (earlier, later) = (observed(before), observed(after));
        diff.newly_observed = only_in(&later, &earlier);
        diff.no_longer_observed = only_in(&earlier, &later);
        let has_run: BTreeSet<&CaseKey> =
            after.results.iter().filter(|result| result.verdict.has_run()).map(|result| &result.key).collect();
        diff.no_longer_observed.retain(|gone| earlier[&gone.requirement].iter().any(|key| has_run.contains(key)));
        diff
    }

    fn add(&mut self, before: Option<&CaseResult>, after: &CaseResult) {
        let change = Change {
            key: after.key.clone(),
            before: before.map(|result| result.verdict),
            after: Some(after.verdict),
            text: after.own_signature(),
        };
        let failed_before = before.is_some_and(|before| before.verdict == Verdict::Fail);
        let undecided = |verdict| matches!(verdict, Verdict::Inconclusive | Verdict::Error);
        let skipped = |verdict| matches!(verdict, Verdict::NotApplicable | Verdict::Unimplemented);
        let list = if after.verdict == Verdict::Fail {
            match before {
                Some(before) if failed_before && before.own_signature() == after.own_signature() => None,
                _ if failed_before => Some(&mut self.failing_otherwise),
                _ => Some(&mut self.newly_failing),
            }
        } else {
            match before.map(|before| before.verdict) {
                None => Some(&mut self.added),
                Some(verdict) if undecided(after.verdict) => (!undecided(verdict)).then_some(&mut self.newly_undecided),
                Some(verdict) if skipped(after.verdict) => {
                    (!skipped(verdict)).then_some(&mut self.newly_not_applicable)
                }
                Some(_) if failed_before => Some(&mut self.fixed),
                Some(verdict) if undecided(verdict) => Some(&mut self.decided),
                Some(verdict) => (verdict != after.verdict).then_some(&mut self.added),
            }
        };
        match list {
            Some(list) => list.push(change),
            None => self.same += 1,
        }
    }

    /// Returns each list of cases with the name of the list.
    pub fn lists(&self) -> impl Iterator<Item = (&'static str, &[Change])> {
        [
            ("newly failing", &self.newly_failing[..]),
            ("failing differently", &self.failing_otherwise),
            ("newly undecided", &self.newly_undecided),
            ("not run", &self.not_run),
            ("newly not applicable", &self.newly_not_applicable),
            ("fixed", &self.fixed),
            ("decided", &self.decided),
            ("added", &self.added),
        ]
        .into_iter()
    }

    /// Returns each list of observations with the name of the list.
    pub fn observations(&self) -> impl Iterator<Item = (&'static str, &[ObservedViolation])> {
        [("newly observed", &self.newly_observed[..]), ("no longer observed", &self.no_longer_observed)].into_iter()
    }

    /// Returns exit code 1 if the later run has new or different failures, or new findings.
    /// Otherwise returns 3 if a case is no longer decided, run or applicable, and 0 if there is no
    /// such case.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if !self.newly_failing.is_empty() || !self.failing_otherwise.is_empty() || !self.newly_observed.is_empty() {
            ExitCode::Unexpected
        } else if !self.newly_undecided.is_empty() || !self.not_run.is_empty() || !self.newly_not_applicable.is_empty()
        {
            ExitCode::Inconclusive
        } else {
            ExitCode::AsExpected
        }
    }
}

/// Returns, for each requirement, the cases about other requirements in which the monitor observed
/// a violation of this requirement.
fn observed(report: &RunReport) -> BTreeMap<RequirementId, BTreeSet<&CaseKey>> {
    let mut observed: BTreeMap<RequirementId, BTreeSet<&CaseKey>> = BTreeMap::new();
    for result in &report.results {
        let broken =
            result.requirements.iter().filter(|judged| judged.also_observed && judged.verdict == Verdict::Fail);
        for judged in broken {
            observed.entry(judged.requirement).or_default().insert(&result.key);
        }
    }
    observed
}

fn only_in(
    some: &BTreeMap<RequirementId, BTreeSet<&CaseKey>>,
    others: &BTreeMap<RequirementId, BTreeSet<&CaseKey>>,
) -> Vec<ObservedViolation> {
    let alone = some.iter().filter(|(requirement, _)| !others.contains_key(requirement));
    alone.map(|(requirement, keys)| ObservedViolation { requirement: *requirement, cases: keys.len() }).collect()
}
