//! Compares two runs: `before` and `after`.
//!
//! Verdicts of cases and findings of the monitor are compared separately. A target that violates
//! one rule in every case has that finding in each of them. This finding is independent of the
//! subjects of the cases.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use weft_core::RequirementId;

use crate::model::{CaseKey, CaseResult, ExitCode, RunReport, Verdict};

/// One case that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// Which case with which parameters.
    pub key: CaseKey,
    /// Its verdict before; `None` if it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Verdict>,
    /// Its verdict after; `None` if it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Verdict>,
    /// The failure signature of the later run, or its reason for no decision.
    pub text: String,
}

/// A requirement that the monitor saw violated in cases about other requirements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Observed {
    /// The requirement.
    #[schemars(with = "String")]
    pub requirement: RequirementId,
    /// The number of cases.
    pub cases: usize,
}

/// The differences, each case in one list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Diff {
    /// Failed after and not before, including cases that were not run before.
    pub newly_failing: Vec<Change>,
    /// Failed both times, in different ways.
    pub failing_otherwise: Vec<Change>,
    /// Failed before, passes after.
    pub fixed: Vec<Change>,
    /// Decided before; inconclusive or an error of the tester after.
    pub newly_undecided: Vec<Change>,
    /// Inconclusive or an error of the tester before; passes after.
    pub decided: Vec<Change>,
    /// Run before, not applicable or unimplemented after.
    pub newly_not_applicable: Vec<Change>,
    /// Only in the earlier run.
    pub not_run: Vec<Change>,
    /// Only in the later run, or only applicable there, and not failing.
    pub added: Vec<Change>,
    /// Observed only in the later run.
    pub newly_observed: Vec<Observed>,
    /// Observed only in the earlier run, although the later one ran such a case, too.
    pub no_longer_observed: Vec<Observed>,
    /// Cases with the same outcome.
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

    /// The lists with their names.
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

    /// The lists of observations with their names.
    pub fn observations(&self) -> impl Iterator<Item = (&'static str, &[Observed])> {
        [("newly observed", &self.newly_observed[..]), ("no longer observed", &self.no_longer_observed)].into_iter()
    }

    /// 1 for new failures or findings, 3 if a case is no longer decided or run, otherwise 0.
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

/// The cases in which the monitor also observed a violation of each requirement.
fn observed(report: &RunReport) -> BTreeMap<RequirementId, BTreeSet<&CaseKey>> {
    let mut observed: BTreeMap<RequirementId, BTreeSet<&CaseKey>> = BTreeMap::new();
    for result in &report.results {
        let broken =
            result.requirements.iter().filter(|judged| judged.seen_on_the_way && judged.verdict == Verdict::Fail);
        for judged in broken {
            observed.entry(judged.requirement).or_default().insert(&result.key);
        }
    }
    observed
}

fn only_in(
    some: &BTreeMap<RequirementId, BTreeSet<&CaseKey>>,
    others: &BTreeMap<RequirementId, BTreeSet<&CaseKey>>,
) -> Vec<Observed> {
    let alone = some.iter().filter(|(requirement, _)| !others.contains_key(requirement));
    alone.map(|(requirement, keys)| Observed { requirement: *requirement, cases: keys.len() }).collect()
}
