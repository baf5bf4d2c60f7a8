//! The baseline of a target: known and expected outcomes, each with a reason. An entry that no
//! longer matches is stale.

mod make;
mod scope;
mod signature;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use make::{of_failures, to_toml};
use scope::Scope;

use crate::model::{CaseKey, CaseResult, ExpectedResult, RunStatus, Verdict, current_word, stable};
use crate::script::{Suites, variants};

/// The fields that an entry must have.
const REQUIRED: [&str; 4] = ["case", "outcome", "signature", "reason"];

/// Returns the required fields that the `[[baseline]]` entries of a target file lack. `None` if all
/// entries are complete.
pub(crate) fn missing_fields(file: &toml::Table) -> Option<String> {
    let entries = file.get("baseline")?.as_array()?;
    let lacks = (1..).zip(entries).filter_map(|(number, entry)| {
        let entry = entry.as_table()?;
        let missing: Vec<&str> = REQUIRED.into_iter().filter(|name| !entry.contains_key(*name)).collect();
        let case =
            entry.get("case").and_then(toml::Value::as_str).map_or_else(String::new, |case| format!(" ({case})"));
        (!missing.is_empty()).then(|| format!("entry {number}{case} lacks {}", missing.join(", ")))
    });
    let lacks: Vec<String> = lacks.collect();
    (!lacks.is_empty()).then(|| format!("baseline: {}", lacks.join("; ")))
}

/// Returns the entries of a file with the current ids of renamed cases.
///
/// # Errors
/// An entry has no reason, or expects a plain pass.
pub(crate) fn checked(mut entries: Vec<BaselineEntry>) -> Result<Vec<BaselineEntry>, String> {
    for entry in &mut entries {
        entry.case = current_word(&entry.case);
    }
    if let Some(entry) = entries.iter().find(|entry| entry.reason.trim().is_empty()) {
        return Err(format!("baseline: {}: expected a reason", entry.case));
    }
    // An entry for a pass is valid only with a signature: the case passed, but the target violated
    // a requirement.
    let is_plain_pass = |entry: &&BaselineEntry| entry.outcome == Verdict::Pass && entry.signature.is_empty();
    if let Some(entry) = entries.iter().find(is_plain_pass) {
        return Err(format!("baseline: {}: a pass needs no entry; remove this entry", entry.case));
    }
    Ok(entries)
}

/// One `[[baseline]]` of a target file or of a file of `weft baseline write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineEntry {
    /// The id of a case, for all its variants, or the key of one variant (`case[parameter=value]`).
    /// `mpa/7.1.1-key/*` is for all cases whose ids begin with `mpa/7.1.1-key/`, and `mpa/7.1/*` is
    /// for all cases of section 7.1 and of its subsections. `requirement:MPA-7.1.1-2` is for all
    /// results that judge the requirement, and for results in which a violation of it was also
    /// observed.
    pub case: String,
    /// The expected verdict.
    pub outcome: Verdict,
    /// A part of the failure signature, which reports show. If the same case fails with another
    /// signature, that failure is not expected. The ids of requirements at the begin must be all
    /// violated ids if a text follows them, or if the case passes. Values that change from run to
    /// run (STags, times, ports) are ignored.
    pub signature: String,
    /// The reason why the outcome is expected.
    pub reason: String,
    /// A link to more information.
    #[serde(default)]
    pub link: Option<String>,
}

impl BaselineEntry {
    fn scope(&self) -> Scope<'_> {
        Scope::of(&self.case)
    }

    /// Returns whether the entry `earlier` expects every result that this entry expects.
    #[must_use]
    pub fn is_covered_by(&self, earlier: &BaselineEntry) -> bool {
        (earlier.case == self.case || earlier.scope().includes(&self.scope()))
            && earlier.outcome == self.outcome
            && signature::expects(&earlier.signature, &self.signature, self.outcome == Verdict::Pass)
    }

    /// Returns whether the entry matches this result.
    fn matches(&self, result: &CaseResult) -> bool {
        // A person may have copied the signature in the entry from a report. So the signature may
        // contain values of the reported run, and may end in the middle of a value.
        let words = result.actual.as_ref().unwrap_or(&result.explanation);
        // The signature of a pass has only ids. All of them must be known.
        let known = stable(&self.signature);
        let shown = signature::expects(&known, &result.signature(), self.outcome == Verdict::Pass)
            || words.contains(&self.signature);
        self.outcome == result.verdict && shown && self.scope().has_outcome(result, self.outcome)
    }
}

/// Returns whether the case exercised the target. A case that has no steps and is not applicable or
/// inconclusive did not exercise the target.
fn was_tried(result: &CaseResult) -> bool {
    !result.steps.is_empty() || !matches!(result.verdict, Verdict::NotApplicable | Verdict::Inconclusive)
}

/// Returns whether `judged` has a result of each variant that the entry is about. The seed of a run
/// selects variants, so `judged` may lack some variants. In a folder, section or requirement, cases
/// that the target skips do not count.
///
/// A violation of a requirement can be also observed in any case. So an entry for that needs a
/// result of all variants.
fn is_complete(entry: &BaselineEntry, judged: &[&CaseResult], results: &[CaseResult], suites: &Suites) -> bool {
    let scope = entry.scope();
    if matches!(scope, Scope::Requirement(_)) && entry.outcome == Verdict::Pass {
        let keys: BTreeSet<&CaseKey> = results.iter().map(|result| &result.key).collect();
        return suites.cases().flat_map(variants).all(|key| keys.contains(&key));
    }
    let skipped = results.iter().filter(|result| scope.is_group() && !result.verdict.has_run());
    let decided: BTreeSet<&CaseKey> = judged.iter().copied().chain(skipped).map(|result| &result.key).collect();
    scope.variants(suites).iter().all(|key| decided.contains(key))
}

/// Returns the expected results and the stale entries. `suites` are the suites of the run.
///
/// An entry is stale if it can never match, or if an earlier entry expects the same results. It is
/// also stale if all its variants were run and decided, and it matches none of the results. So an
/// entry does not become stale if the seed of a run did not select some of its variants.
pub(crate) fn judge(
    entries: &[BaselineEntry],
    results: &[CaseResult],
    status: RunStatus,
    suites: &Suites,
) -> (Vec<ExpectedResult>, Vec<String>) {
    let mut expected: Vec<ExpectedResult> = Vec::new();
    let mut known: BTreeSet<&CaseKey> = BTreeSet::new();
    let mut stale = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let scope = entry.scope();
        if let Some(why) = scope.lack(suites) {
            stale.push(format!("{}: {why}", entry.case));
            continue;
        }
        if entries.iter().take(index).any(|earlier| entry.is_covered_by(earlier)) {
            stale.push(format!("{}: an earlier entry already expects this outcome; remove this entry", entry.case));
            continue;
        }
        let is_judged = |result: &&CaseResult| scope.names(result) && (was_tried(result) || entry.matches(result));
        let judged: Vec<&CaseResult> = results.iter().filter(is_judged).collect();
        // If no variant of the entry was selected, reached and tried, the entry is undecided.
        let Some(first) = judged.first() else { continue };
        let matching: Vec<&CaseResult> = judged.iter().copied().filter(|result| entry.matches(result)).collect();
        for result in &matching {
            if known.insert(&result.key) {
                let (reason, link) = (entry.reason.clone(), entry.link.clone());
                let group = scope.is_group().then(|| entry.case.clone());
                expected.push(ExpectedResult { key: result.key.clone(), reason, link, entry: group });
            }
        }
        let is_decided = judged.iter().all(|result| !matches!(result.verdict, Verdict::Inconclusive | Verdict::Error));
        if matching.is_empty()
            && is_decided
            && status == RunStatus::Done
            && is_complete(entry, &judged, results, suites)
        {
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

/// Returns the results that are worse than a pass, that an entry names, and that no entry expects,
/// with the difference. Each text begins with the variant. Entries in `stale` already have a text.
/// A folder, section or requirement has a text only if the entry expects none of its results.
pub(crate) fn unmatched(
    entries: &[BaselineEntry],
    results: &[CaseResult],
    expected: &[ExpectedResult],
    stale: &[String],
) -> Vec<String> {
    let is_expected = |key: &CaseKey| expected.iter().any(|expected| expected.key == *key);
    let is_open =
        |result: &&CaseResult| result.verdict > Verdict::Pass && was_tried(result) && !is_expected(&result.key);
    let open: Vec<&CaseResult> = results.iter().filter(is_open).collect();
    let mut lines = Vec::new();
    for (number, entry) in (1..).zip(entries) {
        let begin = format!("{}: ", entry.case);
        if stale.iter().any(|text| text.starts_with(&begin)) {
            continue;
        }
        let scope = entry.scope();
        if scope.is_group() && results.iter().any(|result| scope.names(result) && entry.matches(result)) {
            continue;
        }
        let named: Vec<&CaseResult> = open.iter().copied().filter(|result| scope.names(result)).collect();
        let Some(first) = named.first() else { continue };
        let difference = match entry.outcome == first.verdict {
            true => format!("its signature {:?} differs from this result's: {:?}", entry.signature, first.signature()),
            false => format!("its outcome {} differs from this result's: {}", entry.outcome, first.verdict),
        };
        let others = match named.len() - 1 {
            0 => String::new(),
            1 => " (and 1 more variant)".to_owned(),
            others => format!(" (and {others} more variants)"),
        };
        lines.push(format!("{}: baseline entry {number} names this case, but {difference}{others}", first.key));
    }
    lines
}
