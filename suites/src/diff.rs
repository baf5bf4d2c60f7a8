//! What is different between two runs: `before` and `after`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{CaseKey, CaseResult, ExitCode, RunReport, Verdict};

/// One case that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// Which case with which parameters.
    pub key: CaseKey,
    /// Its verdict before; `None` where it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Verdict>,
    /// Its verdict after; `None` where it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Verdict>,
    /// What the later run says: its failure signature, or why it decided nothing.
    pub text: String,
}

/// The differences, each case in one list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Diff {
    /// Failed after and not before; cases that were not run before are among them.
    pub newly_failing: Vec<Change>,
    /// Failed both times, in another way.
    pub failing_otherwise: Vec<Change>,
    /// Failed before, passes after.
    pub fixed: Vec<Change>,
    /// Decided before, inconclusive or a fault of the tester after.
    pub newly_undecided: Vec<Change>,
    /// Inconclusive or a fault of the tester before, passes after.
    pub decided: Vec<Change>,
    /// Run before, not applicable or unimplemented after.
    pub newly_not_applicable: Vec<Change>,
    /// In the earlier run alone.
    pub not_run: Vec<Change>,
    /// In the later run alone, or applicable there alone, and not failing.
    pub added: Vec<Change>,
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
        diff
    }

    fn add(&mut self, before: Option<&CaseResult>, after: &CaseResult) {
        let change = Change {
            key: after.key.clone(),
            before: before.map(|result| result.verdict),
            after: Some(after.verdict),
            text: after.signature(),
        };
        let failed_before = before.is_some_and(|before| before.failing().next().is_some());
        let undecided = |verdict| matches!(verdict, Verdict::Inconclusive | Verdict::Error);
        let skipped = |verdict| matches!(verdict, Verdict::NotApplicable | Verdict::Unimplemented);
        let list = if after.failing().next().is_some() {
            match before {
                Some(before) if failed_before && before.signature() == after.signature() => None,
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

    /// The lists with what is in them called.
    pub fn lists(&self) -> impl Iterator<Item = (&'static str, &[Change])> {
        [
            ("newly failing", &self.newly_failing[..]),
            ("failing otherwise", &self.failing_otherwise),
            ("newly undecided", &self.newly_undecided),
            ("not run", &self.not_run),
            ("newly not applicable", &self.newly_not_applicable),
            ("fixed", &self.fixed),
            ("decided", &self.decided),
            ("added", &self.added),
        ]
        .into_iter()
    }

    /// 1 with new failures, 3 where something is no longer decided or run, else 0.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if !self.newly_failing.is_empty() || !self.failing_otherwise.is_empty() {
            ExitCode::Unexpected
        } else if !self.newly_undecided.is_empty() || !self.not_run.is_empty() || !self.newly_not_applicable.is_empty()
        {
            ExitCode::Inconclusive
        } else {
            ExitCode::AsExpected
        }
    }
}
