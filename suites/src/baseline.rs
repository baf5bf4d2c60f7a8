//! The baseline of a target: known and expected outcomes, each with a reason. An entry that no
//! longer matches is stale.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{CaseKey, CaseResult, ExpectedResult, RunStatus, Verdict, stable};

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

/// One `[[baseline]]` of a target file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineEntry {
    /// The id of a case, for all its variants, or the key of one variant (`case[parameter=value]`).
    pub case: String,
    /// The expected verdict.
    pub outcome: Verdict,
    /// A part of the failure signature, which reports show. If the same case fails with another
    /// signature, that failure is not expected. Values that change from run to run (STags, times,
    /// ports) are ignored.
    pub signature: String,
    /// The reason why the outcome is expected.
    pub reason: String,
    /// A link to more information.
    #[serde(default)]
    pub link: Option<String>,
}

impl BaselineEntry {
    /// Returns the variant of the entry. `None` if the entry is about all variants of a case, or is
    /// not spelled like a variant.
    fn variant(&self) -> Option<CaseKey> {
        let is_one = |key: &CaseKey| !key.parameters.is_empty();
        self.case.parse().ok().filter(is_one)
    }

    /// Returns whether the entry is about this variant.
    fn names(&self, key: &CaseKey) -> bool {
        self.case == key.case || self.variant().as_ref() == Some(key)
    }

    /// Returns the reason why the entry can never match, if there is one. `variants` returns the
    /// variants of a case, or `None` if the case does not exist.
    fn of_nothing(&self, variants: impl Fn(&str) -> Option<Vec<CaseKey>>) -> Option<&'static str> {
        let id = self.case.split('[').next().unwrap_or_default();
        let Some(variants) = variants(id) else { return Some("there is no such case") };
        let is_there = id == self.case || self.variant().is_some_and(|variant| variants.contains(&variant));
        (!is_there).then_some("the case has no such variant")
    }

    /// Returns whether the entry `earlier` expects every result that this entry expects.
    fn is_covered_by(&self, earlier: &BaselineEntry) -> bool {
        let id = self.case.split('[').next().unwrap_or_default();
        (earlier.case == self.case || earlier.case == id)
            && earlier.outcome == self.outcome
            && self.signature.contains(&earlier.signature)
    }

    /// Returns whether `judged` has a result of each variant that the entry is about. The seed of a
    /// run selects variants, so `judged` may lack some variants of the entry.
    fn is_about_no_more_than(&self, judged: &[&CaseResult], variants: impl Fn(&str) -> Option<Vec<CaseKey>>) -> bool {
        let about = match self.variant() {
            Some(one) => vec![one],
            None => variants(&self.case).unwrap_or_default(),
        };
        about.iter().all(|key| judged.iter().any(|result| result.key == *key))
    }

    /// Returns whether the entry matches this result.
    fn matches(&self, result: &CaseResult) -> bool {
        // A person may have copied the signature in the entry from a report. So the signature may
        // contain values of the reported run, and may end in the middle of a value.
        let words = result.actual.as_ref().unwrap_or(&result.explanation);
        let shown = result.signature().contains(&stable(&self.signature)) || words.contains(&self.signature);
        self.outcome == result.verdict && shown
    }
}

/// Returns whether the case exercised the target. A case that has no steps and is not applicable or
/// inconclusive did not exercise the target.
fn was_tried(result: &CaseResult) -> bool {
    !result.steps.is_empty() || !matches!(result.verdict, Verdict::NotApplicable | Verdict::Inconclusive)
}

/// Returns the expected results and the stale entries. `variants` returns the variants of a case in
/// the suites.
///
/// An entry is stale if it can never match, or if an earlier entry expects the same results. It is
/// also stale if all its variants were run and decided, and it matches none of the results. So an
/// entry does not become stale if the seed of a run did not select some of its variants.
pub(crate) fn judge(
    entries: &[BaselineEntry],
    results: &[CaseResult],
    status: RunStatus,
    variants: impl Fn(&str) -> Option<Vec<CaseKey>>,
) -> (Vec<ExpectedResult>, Vec<String>) {
    let mut expected: Vec<ExpectedResult> = Vec::new();
    let mut stale = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        if let Some(why) = entry.of_nothing(&variants) {
            stale.push(format!("{}: {why}", entry.case));
            continue;
        }
        if entries.iter().take(index).any(|earlier| entry.is_covered_by(earlier)) {
            stale.push(format!("{}: an earlier entry already expects this outcome; remove this entry", entry.case));
            continue;
        }
        let is_judged = |result: &&CaseResult| entry.names(&result.key) && (was_tried(result) || entry.matches(result));
        let judged: Vec<&CaseResult> = results.iter().filter(is_judged).collect();
        // If no variant of the entry was selected, reached and tried, the entry is undecided.
        let Some(first) = judged.first() else { continue };
        let matching: Vec<&CaseResult> = judged.iter().copied().filter(|result| entry.matches(result)).collect();
        for result in &matching {
            if !expected.iter().any(|other| other.key == result.key) {
                let (reason, link) = (entry.reason.clone(), entry.link.clone());
                expected.push(ExpectedResult { key: result.key.clone(), reason, link });
            }
        }
        let is_decided = judged.iter().all(|result| !matches!(result.verdict, Verdict::Inconclusive | Verdict::Error));
        if matching.is_empty()
            && is_decided
            && status == RunStatus::Done
            && entry.is_about_no_more_than(&judged, &variants)
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
        let named: Vec<&CaseResult> = open.iter().copied().filter(|result| entry.names(&result.key)).collect();
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
