//! Allure results: a folder from which Allure makes its report. It has one file `UUID-result.json`
//! for each result, copies of the evidence, `environment.properties` and `categories.json`.
//!
//! The ids depend only on the run and on the variant, so a second report replaces the first.
//! Results of several runs can be in one folder. Allure then shows the later results of a variant
//! as retries. A run has no start times of its cases. Therefore the results have their order and
//! their durations in the run, as if one case had run after the other.

mod id;
mod labels;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::ReportError;
use super::details::details;
use super::evidence::{evidence_path, read_evidence};
use super::other_causes::{OtherCause, marks, message, other_causes};
use crate::file;
use crate::model::{CaseResult, Direction, DroppedTraffic, EvidenceKind, RunReport, Step, StepKind, Verdict};

/// Writes a run's Allure results into `folder`, which is created if it is missing. Files of other
/// runs stay there. The evidence is copied from the run's folder `out`. Missing evidence is
/// omitted.
///
/// # Errors
/// A file cannot be written.
pub fn allure(report: &RunReport, out: &Path, folder: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(folder).map_err(|error| ReportError::Write { path: folder.to_owned(), error })?;
    let other_causes = other_causes(report);
    let marks = marks(report, &other_causes);
    let mut start_us = report.run.started_unix_ms.saturating_mul(1000);
    for (place, result) in report.results.iter().enumerate() {
        let uuid = id::uuid(&[report.run.id.as_str(), &result.key.to_string()]);
        let mut value = one(report, result, start_us);
        value["uuid"] = json!(uuid);
        value["attachments"] = json!(attachments(result, &uuid, out, folder)?);
        if let Some(marks) = marks.get(&place) {
            value["status"] = json!("broken");
            value["statusDetails"] = marked(marks);
        }
        write(folder, &format!("{uuid}-result.json"), format!("{value:#}\n").as_bytes())?;
        start_us = start_us.saturating_add(result.duration_us);
    }
    write(folder, "environment.properties", labels::environment(report).as_bytes())?;
    write(folder, "categories.json", format!("{:#}\n", categories()).as_bytes())
}

fn write(folder: &Path, name: &str, octets: &[u8]) -> Result<(), ReportError> {
    let path = folder.join(name);
    file::replace(&path, octets).map_err(|error| ReportError::Write { path, error })
}

/// Returns a result without its id and its attachments.
fn one(report: &RunReport, result: &CaseResult, start_us: u64) -> Value {
    let key = result.key.to_string();
    let variant = key.strip_prefix(&result.key.case).unwrap_or_default();
    let (start, stop) = (start_us / 1000, start_us.saturating_add(result.duration_us) / 1000);
    json!({
        "historyId": id::hexadecimal(&[report.run.target.name.as_str(), &key]),
        "testCaseId": id::hexadecimal(&[result.key.case.as_str()]),
        "fullName": key,
        "name": format!("{} {variant}", result.title).trim_end(),
        "status": status(result.verdict),
        "statusDetails": status_details(report, result),
        "stage": "finished",
        "start": start,
        "stop": stop,
        "labels": labels::labels(report, result),
        "links": labels::links(report, result),
        "parameters": parameters(report, result),
        "steps": steps(&result.steps, start, stop),
    })
}

fn status(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::Inconclusive | Verdict::Error => "broken",
        Verdict::NotApplicable | Verdict::Unimplemented => "skipped",
    }
}

/// Returns the message and the details. The message begins with the verdict if it is neither a pass
/// nor a failure, because [`categories`] distinguishes the verdicts by this word.
fn status_details(report: &RunReport, result: &CaseResult) -> Value {
    let (verdict, known) = (result.verdict, report.summary.expects(result));
    let message = match (known, verdict) {
        (Some(known), _) if verdict > Verdict::Pass => {
            format!("expected {verdict}: {}: {}", known.reason, result.explanation)
        }
        (_, Verdict::Pass | Verdict::Fail) => result.explanation.clone(),
        _ => format!("{verdict}: {}", result.explanation),
    };
    let trace = if verdict > Verdict::Pass { details(report, result) + &evidence(result) } else { evidence(result) };
    json!({ "known": known.is_some(), "muted": known.is_some(), "message": message, "trace": trace })
}

/// Returns the details of a result that shows why the run fails although no case fails.
fn marked(marks: &[&OtherCause]) -> Value {
    let text: Vec<&str> = marks.iter().map(|cause| cause.text.as_str()).collect();
    json!({ "known": false, "muted": false, "message": message(marks), "trace": text.join("\n") })
}

/// Returns lines about the evidence: its files, and what the capture lacks.
fn evidence(result: &CaseResult) -> String {
    let files = result.evidence.files.iter().map(|file| file.path.clone());
    let dropped = result.evidence.dropped.iter().map(DroppedTraffic::sentence);
    files.chain(dropped).map(|line| format!("evidence: {line}\n")).collect()
}

fn parameters(report: &RunReport, result: &CaseResult) -> Vec<Value> {
    let own = result.key.parameters.iter().map(|(name, value)| json!({ "name": name, "value": value.to_string() }));
    let run = [
        json!({ "name": "target", "value": report.run.target.name }),
        // Runs with other seeds belong to the same history.
        json!({ "name": "seed", "value": report.run.seed.to_string(), "excluded": true }),
    ];
    own.chain(run).collect()
}

/// Returns the transcript. The times of the steps are within those of the case, because the clock
/// of a link can be virtual.
fn steps(steps: &[Step], start: u64, stop: u64) -> Vec<Value> {
    let at = |step: &Step| start.saturating_add(step.at_ns / 1_000_000).min(stop);
    let ends = steps.iter().skip(1).map(at).chain([stop]);
    let one = |(step, end): (&Step, u64)| {
        let name = match step.direction {
            Direction::Sent => format!("sent: {}", step.text),
            Direction::Received => format!("received: {}", step.text),
            Direction::Observed => step.text.clone(),
        };
        let status = if step.kind == StepKind::Unmet { "failed" } else { "passed" };
        json!({ "name": name, "status": status, "stage": "finished", "start": at(step), "stop": end.max(at(step)) })
    };
    steps.iter().zip(ends).map(one).collect()
}

/// Copies the evidence into `folder`, and returns the attachments.
fn attachments(result: &CaseResult, uuid: &str, out: &Path, folder: &Path) -> Result<Vec<Value>, ReportError> {
    let kinds = [
        (EvidenceKind::Pcapng, "evidence.pcapng", "application/vnd.tcpdump.pcap"),
        (EvidenceKind::Transcript, "transcript.json", "application/json"),
    ];
    let mut attachments = Vec::new();
    for (kind, name, media_type) in kinds {
        let Some(octets) = evidence_path(result, kind).and_then(|path| read_evidence(out, path, u64::MAX)) else {
            continue;
        };
        let source = format!("{uuid}-{name}");
        write(folder, &source, &octets)?;
        attachments.push(json!({ "name": name, "source": source, "type": media_type }));
    }
    Ok(attachments)
}

/// Returns the categories, by which Allure groups results that did not pass.
fn categories() -> Value {
    json!([
        { "name": "Violations", "matchedStatuses": ["failed"], "messageRegex": "(?s)(?!expected ).*" },
        { "name": "Known results (baseline)", "matchedStatuses": ["failed", "broken"], "messageRegex": "(?s)expected .*" },
        { "name": "Inconclusive", "matchedStatuses": ["broken"], "messageRegex": "(?s)inconclusive: .*" },
        { "name": "Errors of weft, of its machine or of a script", "matchedStatuses": ["broken"], "messageRegex": "(?s)error: .*" },
        { "name": "Other reasons why the run fails", "matchedStatuses": ["broken"], "messageRegex": "(?s)this case does not fail, .*" },
        { "name": "Not applicable to the target", "matchedStatuses": ["skipped"], "messageRegex": "(?s)not-applicable: .*" },
        { "name": "Not implemented by the target", "matchedStatuses": ["skipped"], "messageRegex": "(?s)unimplemented: .*" },
    ])
}
