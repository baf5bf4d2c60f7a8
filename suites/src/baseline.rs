//! The baseline of a target: known and expected outcomes, each with a reason. An entry that no
//! longer matches is stale.

mod index;
mod make;
mod scope;
mod signature;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use index::{EarlierEntries, KnownResult, KnownResults, ParsedEntry};
pub use make::{FailureBaseline, of_failures, to_toml};
use scope::Scope;

use crate::model::{CaseKey, CaseResult, ExpectedResult, RunStatus, Verdict, current_word};
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

/// Returns the entries `own`, and then the entries of `more`. Leaves out an entry of `more` if an
/// entry of `own` expects every result that it expects.
#[must_use]
pub fn merged(own: &[BaselineEntry], mut more: Vec<BaselineEntry>) -> Vec<BaselineEntry> {
    let parsed: Vec<ParsedEntry<'_>> = own.iter().map(ParsedEntry::of).collect();
    let mut earlier = EarlierEntries::default();
    parsed.iter().for_each(|entry| earlier.add(entry));
    more.retain(|entry| !earlier.covers(&ParsedEntry::of(entry)));
    own.iter().cloned().chain(more).collect()
}

/// What the baseline of a target shows about the results of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Comparison {
    /// The results that the baseline expects.
    pub(crate) expected: Vec<ExpectedResult>,
    /// The stale entries, as text. Each text begins with the field `case` of the entry.
    pub(crate) stale: Vec<String>,
    /// The results that are worse than a pass, that an entry names, and that no entry expects, with
    /// the difference, as text. Each text begins with the variant.
    pub(crate) unmatched: Vec<String>,
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
fn is_complete(
    entry: &ParsedEntry<'_>,
    judged: &[&KnownResult<'_>],
    results: &KnownResults<'_>,
    suites: &Suites,
) -> bool {
    let scope = &entry.scope;
    if matches!(scope, Scope::Requirement(_)) && entry.entry.outcome == Verdict::Pass {
        return suites.cases().flat_map(variants).all(|key| results.has(&key));
    }
    let skipped = results.all.iter().filter(|known| scope.is_group() && !known.result.verdict.has_run());
    let decided: BTreeSet<&CaseKey> = judged.iter().copied().chain(skipped).map(|known| &known.result.key).collect();
    scope.variants(suites).iter().all(|key| decided.contains(key))
}

/// Compares the results of a run with a baseline. `suites` are the suites of the run.
///
/// An entry is stale if it can never match, or if an earlier entry expects the same results. It is
/// also stale if all its variants were run and decided, and it matches none of the results. So an
/// entry does not become stale if the seed of a run did not select some of its variants.
pub(crate) fn judge(
    entries: &[BaselineEntry],
    results: &[CaseResult],
    status: RunStatus,
    suites: &Suites,
) -> Comparison {
    let results = KnownResults::of(results);
    let parsed_entries: Vec<ParsedEntry<'_>> = entries.iter().map(ParsedEntry::of).collect();
    let mut earlier = EarlierEntries::default();
    let mut expected: Vec<ExpectedResult> = Vec::new();
    let mut expected_keys: BTreeSet<&CaseKey> = BTreeSet::new();
    let mut stale = Vec::new();
    // The entries that are not stale, with their numbers from 1.
    let mut valid: Vec<(usize, &ParsedEntry<'_>)> = Vec::new();
    for (number, parsed) in (1..).zip(&parsed_entries) {
        let ParsedEntry { entry, scope, .. } = parsed;
        let is_covered = earlier.covers(parsed);
        earlier.add(parsed);
        if let Some(why) = scope.lack(suites) {
            stale.push(format!("{}: {why}", entry.case));
            continue;
        }
        if is_covered {
            stale.push(format!("{}: an earlier entry already expects this outcome; remove this entry", entry.case));
            continue;
        }
        let is_judged = |known: &&KnownResult<'_>| was_tried(known.result) || parsed.matches(known);
        let judged: Vec<&KnownResult<'_>> = results.named_by(scope).into_iter().filter(is_judged).collect();
        let matching: Vec<&KnownResult<'_>> = judged.iter().copied().filter(|known| parsed.matches(known)).collect();
        for KnownResult { result, .. } in matching.iter().copied() {
            if expected_keys.insert(&result.key) {
                let (reason, link) = (entry.reason.clone(), entry.link.clone());
                let group = scope.is_group().then(|| entry.case.clone());
                expected.push(ExpectedResult { key: result.key.clone(), reason, link, entry: group });
            }
        }
        // If no variant of the entry was selected, reached and tried, the entry is undecided.
        let undecided = [Verdict::Inconclusive, Verdict::Error];
        let is_decided = judged.iter().all(|known| !undecided.contains(&known.result.verdict));
        if let Some(first) = judged.first()
            && matching.is_empty()
            && is_decided
            && status == RunStatus::Done
            && is_complete(parsed, &judged, &results, suites)
        {
            let known = described(entry.outcome, &entry.signature);
            let found = described(first.result.verdict, &first.result.signature());
            stale.push(format!("{}: the entry expects {known}; the result is {found}; remove the entry", entry.case));
        } else {
            valid.push((number, parsed));
        }
    }
    let unmatched = unmatched(&valid, &results, &expected_keys);
    Comparison { expected, stale, unmatched }
}

/// Describes the verdict and the signature of an entry or of a result.
fn described(verdict: Verdict, signature: &str) -> String {
    match verdict {
        Verdict::Pass if signature == Verdict::Pass.as_str() => "a pass without a violation".to_owned(),
        Verdict::Pass => format!("a pass with the violation {signature:?}"),
        _ if signature.is_empty() => format!("{verdict} with any signature"),
        _ => format!("{verdict} with the signature {signature:?}"),
    }
}

/// Returns the texts [`Comparison::unmatched`]. `valid` are the entries that are not stale, with
/// their numbers, and `expected` are the results that an entry expects. A folder, section or
/// requirement has a text only if the entry expects none of its results.
fn unmatched(
    valid: &[(usize, &ParsedEntry<'_>)],
    results: &KnownResults<'_>,
    expected: &BTreeSet<&CaseKey>,
) -> Vec<String> {
    let is_open =
        |result: &CaseResult| result.verdict > Verdict::Pass && was_tried(result) && !expected.contains(&result.key);
    let mut lines = Vec::new();
    for (number, parsed) in valid {
        let ParsedEntry { entry, scope, .. } = parsed;
        let named = results.named_by(scope);
        if scope.is_group() && named.iter().any(|known| parsed.matches(known)) {
            continue;
        }
        let open: Vec<&CaseResult> = named.iter().map(|known| known.result).filter(|result| is_open(result)).collect();
        let Some(first) = open.first() else { continue };
        let difference = match entry.outcome == first.verdict {
            true => format!("its signature {:?} differs from this result's: {:?}", entry.signature, first.signature()),
            false => format!("its outcome {} differs from this result's: {}", entry.outcome, first.verdict),
        };
        let others = match open.len() - 1 {
            0 => String::new(),
            1 => " (and 1 more variant)".to_owned(),
            others => format!(" (and {others} more variants)"),
        };
        lines.push(format!("{}: baseline entry {number} names this case, but {difference}{others}", first.key));
    }
    lines
}
