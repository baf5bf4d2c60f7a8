//! The SARIF report (2.1.0), for code scanning: one rule per requirement, one result per violated
//! requirement.
//!
//! Inconclusive cases and errors of the tester are results of kind `open`, so that they do not look
//! like a pass. Results that the baseline expects are suppressed with the reason. A target that is
//! down, a stale entry of the baseline and a lost capability are results, too: without them, a run
//! could look as if it had passed. Each of them has a separate rule. Locations are lines of the
//! suites.

use serde_json::{Value, json};
use weft_core::requirement::Severity;

use super::ReportError;
use super::other_causes::TARGET_DOWN;
use crate::clock;
use crate::model::{CaseResult, EvidenceKind, RunReport, Verdict};

/// Returns the report as SARIF.
///
/// # Errors
/// The text cannot be made. No known report causes this error.
pub fn sarif(report: &RunReport) -> Result<String, ReportError> {
    let mut rules: Vec<weft_core::RequirementId> = report.results.iter().flat_map(named).collect();
    rules.sort_unstable();
    rules.dedup();
    let results = report.results.iter().flat_map(|result| {
        named(result).into_iter().map(|requirement| one(report, result, requirement, &rules)).collect::<Vec<_>>()
    });
    let mut results: Vec<Value> = results.collect();
    let mut rules: Vec<Value> = rules.iter().map(rule).collect();
    let lost = report.summary.lost_capabilities.iter();
    let lost = lost.map(|capability| format!("the target lost the capability {capability} since an earlier run"));
    for (id, about, entries) in [
        (TARGET_DOWN, "The target accepts connections", report.summary.target_down.iter().cloned().collect()),
        (STALE, "Each entry of the target's baseline still matches a result", report.summary.stale.clone()),
        (LOST, "The target has each capability that it had in an earlier run", lost.collect()),
    ] {
        results.extend(entries.iter().map(|entry| beside_the_cases(report, id, entry, rules.len())));
        if !entries.is_empty() {
            rules.push(json!({
                "id": id,
                "shortDescription": { "text": about },
                "defaultConfiguration": { "level": "error" },
            }));
        }
    }
    let document = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "weft",
                "version": report.run.weft_version,
                "rules": rules,
            }},
            "automationDetails": { "id": format!("weft/{}/{}", report.run.target.name, report.run.id) },
            "invocations": [{
                "executionSuccessful": report.summary.counts.error == 0,
                "startTimeUtc": clock::rfc3339(report.run.started_unix_ms),
                "exitCode": report.summary.exit_code.code(),
            }],
            "originalUriBaseIds": {
                "SUITES": { "description": { "text": "The folder of the suites" } },
                "RUN": { "description": { "text": "The folder of the run" } },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    let failed = |error: serde_json::Error| ReportError::Make { format: "SARIF", error: error.to_string() };
    let mut text = serde_json::to_string_pretty(&document).map_err(failed)?;
    text.push('\n');
    Ok(text)
}

/// Ids of the rules for stale baseline entries and for lost capabilities. In the list of rules,
/// they come after the rules of the requirements, like [`TARGET_DOWN`].
const STALE: &str = "stale-baseline";
const LOST: &str = "lost-capability";

/// Returns the result for a problem that is not in a case. `rule` is the index of the rule `id`.
fn beside_the_cases(report: &RunReport, id: &str, entry: &str, rule: usize) -> Value {
    json!({
        "ruleId": id,
        "ruleIndex": rule,
        "kind": "fail",
        "level": "error",
        "message": { "text": entry },
        "locations": [],
        "partialFingerprints": { "weft/v1": format!("{}/{id}/{entry}", report.run.target.name) },
    })
}

/// Returns the requirements that a result reports: the violated requirements. For a case without a
/// decision, returns its first requirement.
fn named(result: &CaseResult) -> Vec<weft_core::RequirementId> {
    let failing: Vec<_> = result.failing().collect();
    let open = matches!(result.verdict, Verdict::Inconclusive | Verdict::Error);
    match failing.is_empty() && open {
        true => result.requirements.iter().take(1).map(|judged| judged.requirement).collect(),
        false => failing,
    }
}

fn rule(requirement: &weft_core::RequirementId) -> Value {
    let row = requirement.row();
    let sentence = row.sentence.map_or_else(String::new, |sentence| format!(" \"{sentence}\""));
    json!({
        "id": row.id,
        "shortDescription": { "text": row.summary },
        "fullDescription": { "text": format!("{} ({}, section {}): {}{sentence}", row.level, row.role, row.section, row.summary) },
        "help": { "text": row.check },
        "defaultConfiguration": { "level": level(*requirement) },
        "properties": { "level": row.level.to_string(), "section": row.section, "role": row.role },
    })
}

fn level(requirement: weft_core::RequirementId) -> &'static str {
    match requirement.row().level.severity(true) {
        Some(Severity::Error) => "error",
        Some(Severity::Warning) => "warning",
        Some(Severity::Note) | None => "note",
    }
}

fn one(
    report: &RunReport,
    result: &CaseResult,
    requirement: weft_core::RequirementId,
    rules: &[weft_core::RequirementId],
) -> Value {
    let fails = result.failing().any(|failing| failing == requirement);
    let mut text = format!("{}: {}", result.key, result.explanation);
    for (name, value) in [("Expected", &result.expected), ("Actual", &result.actual)] {
        text.push_str(&value.as_ref().map_or_else(String::new, |value| format!("\n{name}: {value}")));
    }
    text.push_str(&result.decision().map_or_else(String::new, |decision| format!("\nDecided at: {decision}")));
    for dropped in &result.evidence.dropped {
        text.push_str(&format!("\nEvidence: {}", dropped.sentence()));
    }
    let at = result.decided_at.as_ref().or_else(|| report.case(result).map(|case| &case.source));
    let locations = at.map(|at| {
        json!({ "physicalLocation": {
            "artifactLocation": { "uri": uri(&at.file), "uriBaseId": "SUITES" },
            "region": { "startLine": at.line.max(1) },
        }, "logicalLocations": [{ "fullyQualifiedName": result.key.to_string(), "kind": "case" }] })
    });
    let files =
        [EvidenceKind::Pcapng, EvidenceKind::Transcript].into_iter().filter_map(|kind| result.evidence.path(kind));
    let attachment = |path| json!({ "artifactLocation": { "uri": uri(path), "uriBaseId": "RUN" } });
    let files: Vec<Value> = files.map(attachment).collect();
    let mut value = json!({
        "ruleId": requirement.as_str(),
        "ruleIndex": rules.iter().position(|other| *other == requirement),
        "kind": if fails { "fail" } else { "open" },
        "level": if fails { level(requirement) } else { "none" },
        "message": { "text": text },
        "locations": locations.into_iter().collect::<Vec<_>>(),
        "attachments": files,
        "partialFingerprints": { "weft/v1": format!("{}/{}/{requirement}", report.run.target.name, result.key) },
    });
    if let Some(expected) = report.summary.expects(result) {
        let justification = match &expected.link {
            Some(link) => format!("{} ({link})", expected.reason),
            None => expected.reason.clone(),
        };
        value["suppressions"] = json!([{ "kind": "external", "status": "accepted", "justification": justification }]);
    }
    value
}

/// Returns a relative path as a URI reference.
fn uri(path: &str) -> String {
    path.replace('%', "%25").replace(' ', "%20").replace('[', "%5B").replace(']', "%5D")
}
