//! Makes the baseline that expects the failures of a run.

use std::collections::{BTreeMap, BTreeSet};

use super::{BaselineEntry, was_tried};
use crate::model::{CaseInfo, CaseKey, CaseResult, RunReport, Verdict};
use crate::script::variants;

/// The baseline that expects the failures of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureBaseline {
    /// The entries for the failures that the baseline of the run did not expect, in the order of
    /// the cases.
    pub entries: Vec<BaselineEntry>,
    /// Number of results that need no entry, because the baseline of the run already expected them.
    pub already_expected: u64,
    /// Number of cases without a decision that have no entry. A run with such cases is not as
    /// expected.
    pub undecided: u64,
}

/// Returns the entries that expect the failures of a run. A case that passed has an entry if a
/// violation of another requirement was observed. Errors of the tester have no entry. Inconclusive
/// cases without a violation have an entry only if `with_undecided` is set. A failure that the
/// baseline of the run already expected has no entry, so that the new entries can be added to that
/// baseline.
///
/// If all variants of a case ran and failed with the same signature, and none of them was expected,
/// the case has one entry. Otherwise, each variant has its own entry, so that no entry expects a
/// variant that passes. Each entry has this `reason`.
#[must_use]
pub fn of_failures(report: &RunReport, reason: &str, with_undecided: bool) -> FailureBaseline {
    let known: BTreeSet<&CaseKey> = report.summary.expected.iter().map(|expected| &expected.key).collect();
    let mut failed: BTreeMap<&str, Vec<&CaseResult>> = BTreeMap::new();
    let (mut already_expected, mut undecided) = (0, 0);
    for result in &report.results {
        if is_undecided(result) && !known.contains(&result.key) {
            if with_undecided {
                failed.entry(&result.key.case).or_default().push(result);
            } else {
                undecided += 1;
            }
        }
        if !is_failure(result) {
            continue;
        }
        if known.contains(&result.key) {
            already_expected += 1;
        } else {
            failed.entry(&result.key.case).or_default().push(result);
        }
    }
    let of_case =
        |case: &CaseInfo| failed.get(case.id.as_str()).map_or_else(Vec::new, |failed| entries(case, failed, reason));
    FailureBaseline { entries: report.cases.iter().flat_map(of_case).collect(), already_expected, undecided }
}

/// Returns the entries for a case of which the results `failed` are not expected.
fn entries(case: &CaseInfo, failed: &[&CaseResult], reason: &str) -> Vec<BaselineEntry> {
    let entries: Vec<BaselineEntry> = failed.iter().map(|result| entry(result, reason)).collect();
    let mut of_all: Vec<BaselineEntry> =
        entries.iter().map(|entry| BaselineEntry { case: case.id.clone(), ..entry.clone() }).collect();
    of_all.dedup();
    if entries.len() == variants(case).len() && of_all.len() == 1 { of_all } else { entries }
}

fn is_failure(result: &CaseResult) -> bool {
    let violates = result.verdict != Verdict::Error && result.failing().next().is_some();
    result.verdict.has_run() && (result.verdict == Verdict::Fail || violates)
}

/// Returns whether the case was tried, and neither decided nor violated anything.
fn is_undecided(result: &CaseResult) -> bool {
    result.verdict == Verdict::Inconclusive && !is_failure(result) && was_tried(result)
}

fn entry(result: &CaseResult, reason: &str) -> BaselineEntry {
    BaselineEntry {
        case: result.key.to_string(),
        outcome: result.verdict,
        signature: result.signature(),
        reason: reason.to_owned(),
        link: None,
    }
}

/// Returns the entries as TOML, as in a target file.
#[must_use]
pub fn to_toml(entries: &[BaselineEntry]) -> String {
    let tables: Vec<String> = entries.iter().map(table).collect();
    tables.join("\n")
}

fn table(entry: &BaselineEntry) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let BaselineEntry { case, outcome, signature, reason, link } = entry;
    let link = link.as_ref().map_or_else(String::new, |link| format!("link = {}\n", quoted(link)));
    format!(
        "[[baseline]]\ncase = {}\noutcome = \"{outcome}\"\nsignature = {}\nreason = {}\n{link}",
        quoted(case),
        quoted(signature),
        quoted(reason)
    )
}
