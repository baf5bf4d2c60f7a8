//! The reasons for an exit code other than 0, as text.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::RequirementId;

use super::{Capability, CaseResult, ExitCode, RunStatus, Summary, Verdict};

/// Maximum number of requirements that a reason names.
const MAX_NAMED: usize = 5;

/// Returns the reasons for the exit code of a summary. `summary` is complete except for the
/// reasons. The list is empty if everything is as expected.
pub(super) fn reasons(summary: &Summary, results: &[&CaseResult]) -> Vec<String> {
    if summary.exit_code == ExitCode::AsExpected {
        return Vec::new();
    }
    let unexpected = results.iter().copied().filter(|result| summary.expects(result).is_none());
    let unexpected: Vec<&CaseResult> = unexpected.collect();
    let mut verdicts: BTreeMap<Verdict, u64> = BTreeMap::new();
    for result in &unexpected {
        *verdicts.entry(result.verdict).or_default() += 1;
    }
    let also_observed = also_observed(summary, unexpected);
    let mut reasons = Vec::new();
    let words = [
        (Verdict::Error, "weft has an error in"),
        (Verdict::Fail, "the target fails"),
        (Verdict::Inconclusive, "there is no decision in"),
    ];
    for (verdict, word) in words {
        if let Some(count) = verdicts.get(&verdict) {
            reasons.push(format!("{word} {}", cases(*count)));
        }
    }
    if !also_observed.is_empty() {
        let named = also_observed.iter().take(MAX_NAMED);
        let reason = |(id, results): (&RequirementId, &Vec<_>)| format!("{id} in {}", cases(results.len() as u64));
        let mut named: Vec<String> = named.map(reason).collect();
        if also_observed.len() > MAX_NAMED {
            named.push(format!("{} more", also_observed.len() - MAX_NAMED));
        }
        reasons.push(format!("also observed: the target violates {}", named.join(", ")));
    }
    match summary.stale.len() {
        0 => {}
        1 => reasons.push("an entry of the baseline is stale".to_owned()),
        count => reasons.push(format!("{count} entries of the baseline are stale")),
    }
    match summary.status {
        RunStatus::Done => {}
        RunStatus::Cancelled => reasons.push("the run was stopped".to_owned()),
        RunStatus::Broken => reasons.push("the run was aborted: its process is gone".to_owned()),
        RunStatus::Planned | RunStatus::WaitingForTarget | RunStatus::Running => {
            reasons.push("the run is not finished".to_owned());
        }
    }
    if summary.exit_code == ExitCode::NothingRun {
        reasons.push("nothing was run".to_owned());
    }
    reasons
}

/// Returns what happened to a target that lost these capabilities, for example `lost the capability
/// markers`. `None` without capabilities.
pub(crate) fn lost_text(lost: &[Capability]) -> Option<String> {
    let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("lost the capability {one}")),
        several => Some(format!("lost the capabilities {}", several.join(", "))),
    }
}

fn cases(count: u64) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}

/// Returns the requirements that the monitor observed to be violated in cases about other
/// requirements. Leaves out results that the baseline expects, and requirements that are also
/// violated in a case about them.
pub(crate) fn also_observed<'a>(
    summary: &Summary,
    results: impl IntoIterator<Item = &'a CaseResult>,
) -> BTreeMap<RequirementId, Vec<&'a CaseResult>> {
    let mut violated: BTreeMap<RequirementId, Vec<&CaseResult>> = BTreeMap::new();
    let mut reported = BTreeSet::new();
    for result in results.into_iter().filter(|result| summary.expects(result).is_none()) {
        for judged in result.requirements.iter().filter(|judged| judged.verdict == Verdict::Fail) {
            if judged.also_observed {
                violated.entry(judged.requirement).or_default().push(result);
            } else {
                reported.insert(judged.requirement);
            }
        }
    }
    violated.retain(|id, _| !reported.contains(id));
    violated
}
