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
    /// The choice that it is about; `None` where it is about all of a case, or is spelled like no choice.
    fn choice(&self) -> Option<CaseKey> {
        let is_one = |key: &CaseKey| !key.parameters.is_empty();
        self.case.parse().ok().filter(is_one)
    }

    /// Is it about this choice?
    fn names(&self, key: &CaseKey) -> bool {
        self.case == key.case || self.choice().as_ref() == Some(key)
    }

    /// Why nothing can ever be what it is about. `choices` gives those of a case, if there is one.
    fn of_nothing(&self, choices: impl Fn(&str) -> Option<Vec<CaseKey>>) -> Option<&'static str> {
        let id = self.case.split('[').next().unwrap_or_default();
        let Some(choices) = choices(id) else { return Some("there is no such case") };
        let is_there = id == self.case || self.choice().is_some_and(|choice| choices.contains(&choice));
        (!is_there).then_some("the case has no such choice of its parameters")
    }

    /// Is it true of this result?
    fn holds(&self, result: &CaseResult) -> bool {
        // As a report shows it, values of that run may stand in it; and it may end in the middle of one.
        let words = result.actual.as_ref().unwrap_or(&result.explanation);
        let shown = result.signature().contains(&stable(&self.signature)) || words.contains(&self.signature);
        self.outcome == result.verdict && shown
    }
}

/// The case did something to the target: it applied, and the target was there.
fn was_tried(result: &CaseResult) -> bool {
    !result.steps.is_empty() || !matches!(result.verdict, Verdict::NotApplicable | Verdict::Inconclusive)
}

/// What is expected of the results, and which entries are stale. `choices` gives the choices of a case of the suites' parameters.
pub(crate) fn judge(
    entries: &[BaselineEntry],
    results: &[CaseResult],
    status: RunStatus,
    choices: impl Fn(&str) -> Option<Vec<CaseKey>>,
) -> (Vec<ExpectedResult>, Vec<String>) {
    let mut expected: Vec<ExpectedResult> = Vec::new();
    let mut stale = Vec::new();
    for entry in entries {
        if let Some(why) = entry.of_nothing(&choices) {
            stale.push(format!("{}: {why}", entry.case));
            continue;
        }
        let is_judged = |result: &&CaseResult| entry.names(&result.key) && (was_tried(result) || entry.holds(result));
        let judged: Vec<&CaseResult> = results.iter().filter(is_judged).collect();
        // Not selected, not come to, or not tried: nothing can be said about the entry.
        let Some(first) = judged.first() else { continue };
        let before = expected.len();
        let held: Vec<&CaseResult> = judged.iter().copied().filter(|result| entry.holds(result)).collect();
        for result in &held {
            if !expected.iter().any(|other| other.key == result.key) {
                let (reason, link) = (entry.reason.clone(), entry.link.clone());
                expected.push(ExpectedResult { key: result.key.clone(), reason, link });
            }
        }
        if expected.len() > before || status != RunStatus::Done {
            continue;
        }
        stale.push(if held.is_empty() {
            format!(
                "{}: expected {} with {:?}, found {} with {:?}",
                entry.case,
                entry.outcome,
                entry.signature,
                first.verdict,
                first.signature()
            )
        } else {
            format!(
                "{}: {} with {:?} is true, but entries before this one expect it already; take this one out",
                entry.case, entry.outcome, entry.signature
            )
        });
    }
    (expected, stale)
}
