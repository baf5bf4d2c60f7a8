//! The baseline of a target: outcomes that are known and expected, each with a reason. An entry that is no longer true is stale.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{CaseKey, CaseResult, ExpectedResult, RunStatus, Verdict, stable};

/// One `[[baseline]]` of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineEntry {
    /// A case, for all choices of its parameters, or one choice (`case[parameter=value]`).
    pub case: String,
    /// The verdict that is expected.
    pub outcome: Verdict,
    /// A part of the failure signature, so that another failure of the same case is not expected too. Reports show signatures; values
    /// that are other ones in each run (STags, times, ports) do not count.
    pub signature: String,
    /// Why this is expected.
    pub reason: String,
    /// Where more is said about it.
    #[serde(default)]
    pub link: Option<String>,
}

impl BaselineEntry {
    /// Is it about this choice?
    fn names(&self, key: &CaseKey) -> bool {
        self.case == key.case || self.case == key.to_string()
    }

    /// Is it true of this result?
    fn holds(&self, result: &CaseResult) -> bool {
        // As a report shows it, values of that run may stand in it; and it may end in the middle of one.
        let words = result.actual.as_ref().unwrap_or(&result.explanation);
        let shown = result.signature().contains(&stable(&self.signature)) || words.contains(&self.signature);
        self.outcome == result.verdict && shown
    }
}

/// What is expected of the results, and which entries are stale. `known` tells whether the suites have a case.
pub(crate) fn judge(
    entries: &[BaselineEntry],
    results: &[CaseResult],
    status: RunStatus,
    known: impl Fn(&str) -> bool,
) -> (Vec<ExpectedResult>, Vec<String>) {
    let mut expected: Vec<ExpectedResult> = Vec::new();
    let mut stale = Vec::new();
    for entry in entries {
        let mut judged = results.iter().filter(|result| entry.names(&result.key)).peekable();
        let id = entry.case.split('[').next().unwrap_or_default();
        if !known(id) {
            stale.push(format!("{}: there is no such case", entry.case));
            continue;
        }
        // Not selected, or not come to: nothing can be said about the entry.
        let Some(first) = judged.peek().copied() else { continue };
        let before = expected.len();
        for result in judged.filter(|result| entry.holds(result)) {
            if !expected.iter().any(|other| other.key == result.key) {
                let (reason, link) = (entry.reason.clone(), entry.link.clone());
                expected.push(ExpectedResult { key: result.key.clone(), reason, link });
            }
        }
        if expected.len() == before && status == RunStatus::Done {
            stale.push(format!(
                "{}: expected {} with {:?}, found {} with {:?}",
                entry.case,
                entry.outcome,
                entry.signature,
                first.verdict,
                first.signature()
            ));
        }
    }
    (expected, stale)
}
