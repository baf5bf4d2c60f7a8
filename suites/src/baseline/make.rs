//! Makes the baseline that expects the failures of a run.

use super::BaselineEntry;
use crate::model::{CaseInfo, CaseResult, RunReport, Verdict};
use crate::script::variants;

/// Returns the entries that expect the failures of a run, in the order of its cases. A case that
/// passed has an entry if a violation of another requirement was observed. Errors of the tester and
/// inconclusive cases without a violation have no entry.
///
/// If every variant of a case ran, and all of them failed with the same signature, the case has one entry.
/// Otherwise, each variant has its own entry, so that no entry expects a variant that passes. An
/// entry has the reason and the link of the baseline that already expected the result, or `reason`.
#[must_use]
pub fn of_failures(report: &RunReport, reason: &str) -> Vec<BaselineEntry> {
    report.cases.iter().flat_map(|case| of_case(report, case, reason)).collect()
}

fn of_case(report: &RunReport, case: &CaseInfo, reason: &str) -> Vec<BaselineEntry> {
    let ran: Vec<&CaseResult> =
        report.results.iter().filter(|result| result.key.case == case.id && result.verdict.has_run()).collect();
    let failed = ran.iter().filter(|result| is_failure(result));
    let entries: Vec<BaselineEntry> = failed.map(|result| entry(report, result, reason)).collect();
    let mut of_all: Vec<BaselineEntry> =
        entries.iter().map(|entry| BaselineEntry { case: case.id.clone(), ..entry.clone() }).collect();
    of_all.dedup();
    if entries.len() == variants(case).len() && of_all.len() == 1 { of_all } else { entries }
}

fn is_failure(result: &CaseResult) -> bool {
    result.verdict == Verdict::Fail || result.verdict != Verdict::Error && result.failing().next().is_some()
}

fn entry(report: &RunReport, result: &CaseResult, reason: &str) -> BaselineEntry {
    let known = report.summary.expects(result);
    BaselineEntry {
        case: result.key.to_string(),
        outcome: result.verdict,
        signature: result.signature(),
        reason: known.map_or(reason, |known| known.reason.as_str()).to_owned(),
        link: known.and_then(|known| known.link.clone()),
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
