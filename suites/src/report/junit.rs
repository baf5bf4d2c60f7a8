//! The JUnit report, for CI systems: one suite per case, one test per variant.
//!
//! JUnit has failures (of the target), errors (everything else that is not a pass) and skips. An
//! inconclusive case is an error of type `inconclusive`, so that it does not look like a pass. Not
//! applicable and unimplemented cases are skipped. Results that the baseline expects are skipped,
//! too, because they do not make the run fail.
//!
//! The output of a separate suite lists stale baseline entries, and violations that were also
//! observed (in cases about other requirements). Each of these makes the run fail. If no case
//! fails, the case that shows the stale entry or the violation is an error
//! ([`other_causes`](mod@super::other_causes)).
//!
//! If the target is down, the first case that did not reach it is an error with the headline of the
//! run. The other cases that did not reach it are skipped, and so are results that the baseline
//! expects.

use std::time::Duration;

use weft_core::text::visible;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::ReportError;
use super::details::details;
use super::other_causes::{OtherCause, TARGET_DOWN, marks, message, other_causes};
use crate::clock;
use crate::model::{CaseResult, RunReport, Verdict};

/// Returns the report as JUnit XML.
///
/// # Errors
/// The text cannot be made. No known report causes this error.
pub fn junit(report: &RunReport) -> Result<String, ReportError> {
    let mut document = Report::new(format!("weft: {}", report.run.target.name));
    document.set_time(Duration::from_micros(report.summary.duration_us));
    let other_causes = other_causes(report);
    let marks = marks(report, &other_causes);
    let headline_at = report.headline_at();
    for case in &report.cases {
        let mut suite = suite(report, &case.id);
        for (name, value) in [
            ("title", case.title.clone()),
            ("requirements", case.requirements.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" ")),
            ("target", report.run.target.name.clone()),
            ("run", report.run.id.clone()),
            ("seed", report.run.seed.to_string()),
        ] {
            suite.add_property((name, value.as_str()));
        }
        for (name, value) in &report.run.labels {
            suite.add_property((format!("label.{name}").as_str(), value.as_str()));
        }
        let results: Vec<(usize, &CaseResult)> =
            report.results.iter().enumerate().filter(|(_, result)| result.key.case == case.id).collect();
        let spent_us = results.iter().map(|(_, result)| result.duration_us).fold(0, u64::saturating_add);
        suite.set_time(Duration::from_micros(spent_us));
        suite.add_test_cases(results.into_iter().map(|(place, result)| {
            let status = match (marks.get(&place), &report.summary.target_down) {
                (Some(marks), _) => marked(marks),
                (None, Some(headline)) if report.is_down_for(result) => {
                    down(headline, result, headline_at == Some(place))
                }
                (None, _) => status(report, result),
            };
            test(result, status)
        }));
        document.add_test_suite(suite);
    }
    let causes = other_causes.iter().filter(|cause| cause.class != TARGET_DOWN);
    let causes = causes.map(|cause| format!("{}: {}", cause.class, cause.text));
    let output: Vec<String> = report.summary.target_down.iter().cloned().chain(causes).collect();
    if !output.is_empty() {
        let mut suite = suite(report, "beside the cases");
        suite.set_system_out(output.join("\n"));
        document.add_test_suite(suite);
    }
    let text = document.to_string().map_err(|error| ReportError::Make { format: "JUnit", error: error.to_string() })?;
    Ok(visible(&without_skipped_sum(&text)).into_owned())
}

fn suite(report: &RunReport, name: &str) -> TestSuite {
    let mut suite = TestSuite::new(name);
    let time = clock::rfc3339(report.run.started_unix_ms);
    // Timestamps in the JUnit schema have no fraction and no time zone.
    let time = time.split('.').next().unwrap_or_default();
    suite.extra.insert("timestamp".into(), time.into());
    suite
}

/// Removes the total number of skipped tests. The schema of Jenkins' xUnit plugin allows this
/// number for each suite, but not for all suites together.
fn without_skipped_sum(text: &str) -> String {
    let Some(start) = text.find("<testsuites ") else { return text.to_owned() };
    let end = text[start..].find('>').map_or(text.len(), |end| start + end);
    let attributes = text[start..end].split(' ').filter(|attribute| !attribute.starts_with("skipped=\""));
    format!("{}{}{}", &text[..start], attributes.collect::<Vec<_>>().join(" "), &text[end..])
}

/// Returns the status of a result that did not reach a target that is down.
fn down(headline: &str, result: &CaseResult, is_shown: bool) -> TestCaseStatus {
    if is_shown {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type(TARGET_DOWN).set_message(headline).set_description(result.explanation.as_str());
        return status;
    }
    let mut status = TestCaseStatus::skipped();
    status.set_message(headline);
    status
}

/// Returns the status of a result without a mark. The headline of a target that is down does not
/// explain the result.
fn status(report: &RunReport, result: &CaseResult) -> TestCaseStatus {
    match result.verdict {
        verdict
            if verdict > Verdict::Pass
                && let Some(expected) = report.summary.expects(result) =>
        {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("expected {verdict}: {}: {}", expected.reason, result.explanation));
            status
        }
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Fail => failed(NonSuccessKind::Failure, report, result),
        Verdict::Inconclusive | Verdict::Error => failed(NonSuccessKind::Error, report, result),
        Verdict::NotApplicable | Verdict::Unimplemented => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("{}: {}", result.verdict, result.explanation));
            status
        }
    }
}

fn test(result: &CaseResult, status: TestCaseStatus) -> TestCase {
    let mut test = TestCase::new(result.key.to_string(), status);
    test.set_classname(result.key.case.replace('/', "."));
    test.set_time(Duration::from_micros(result.duration_us));
    let files: Vec<&str> = result.evidence.files.iter().map(|file| file.path.as_str()).collect();
    if !files.is_empty() {
        let mut text = format!("{}\nevidence: {}\n", result.explanation, files.join(" "));
        for dropped in &result.evidence.dropped {
            text.push_str(&format!("evidence: {}\n", dropped.sentence()));
        }
        test.set_system_out(text);
    }
    test
}

/// Returns the status of a result that shows `marks`. Each of them makes the run fail, although no
/// case fails. The status is an error and not a failure, because the target does not fail this
/// case.
fn marked(marks: &[&OtherCause]) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    let text: Vec<&str> = marks.iter().map(|cause| cause.text.as_str()).collect();
    let class = marks.first().map_or("", |cause| cause.class);
    status.set_type(class).set_message(message(marks)).set_description(text.join("\n"));
    status
}

fn failed(kind: NonSuccessKind, report: &RunReport, result: &CaseResult) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let violated: Vec<&str> = result
        .requirements
        .iter()
        .filter(|judged| judged.verdict == Verdict::Fail)
        .map(|judged| judged.requirement.as_str())
        .collect();
    let kind = if violated.is_empty() { result.verdict.to_string() } else { violated.join(" ") };
    status.set_type(kind).set_message(result.explanation.as_str());
    status.set_description(details(report, result));
    status
}
