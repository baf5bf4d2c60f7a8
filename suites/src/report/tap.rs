//! The TAP report: one test point per result. A test point that is not ok has a YAML block.
//!
//! The version is 13, because every reader accepts this version. Perl's `prove` rejects version 14.
//!
//! Not applicable and unimplemented cases are skipped. Results that the baseline expects are marked
//! TODO, which readers do not count as failures. Stale baseline entries are comments, and so are
//! violations in cases about other requirements. Each of these makes the run fail. If no case
//! fails, the case that shows the stale entry or the violation is `not ok`. In the
//! [JUnit report](mod@super::junit), this case is an error.
//!
//! If the target is down, a comment before all test points is the headline of the run. The first
//! case that did not reach the target is `not ok`, and the others are skipped. Results that the
//! baseline expects remain TODO.

use weft_core::text::visible;

use super::ReportError;
use super::other_causes::{TARGET_DOWN, marks, message, other_causes};
use crate::model::{CaseResult, RunReport, Verdict};

/// Returns the report as TAP.
///
/// # Errors
/// The text cannot be made. No known report causes this error.
pub fn tap(report: &RunReport) -> Result<String, ReportError> {
    let other_causes = other_causes(report);
    let marks = marks(report, &other_causes);
    let mut text = format!("TAP version 13\n1..{}\n", report.results.len());
    let headline_at = report.headline_at();
    if let Some(headline) = &report.summary.target_down {
        text.push_str(&format!("# {}\n", line(headline)));
    }
    for (place, result) in report.results.iter().enumerate() {
        let number = place + 1;
        if let Some(marks) = marks.get(&place) {
            text.push_str(&format!("not ok {number} - {}\n", line(&result.key.to_string())));
            text.push_str(&format!(
                "  ---\n  verdict: {}\n  message: {}\n  ...\n",
                result.verdict,
                quoted(&message(marks))
            ));
            continue;
        }
        if let Some(headline) = report.summary.target_down.as_deref().filter(|_| report.is_down_for(result)) {
            text.push_str(&unreached(headline, result, number, headline_at == Some(place)));
            continue;
        }
        let expected = report.summary.expects(result);
        let ok = matches!(result.verdict, Verdict::Pass | Verdict::NotApplicable | Verdict::Unimplemented);
        let word = if ok { "ok" } else { "not ok" };
        let directive = match (result.verdict, expected) {
            (Verdict::NotApplicable | Verdict::Unimplemented, _) => {
                format!(" # SKIP {}: {}", result.verdict, line(&result.explanation))
            }
            (_, Some(expected)) => format!(" # TODO {}", line(&expected.reason)),
            _ => String::new(),
        };
        text.push_str(&format!("{word} {number} - {}{directive}\n", line(&result.key.to_string())));
        if !ok {
            text.push_str(&block(result));
        }
    }
    for cause in other_causes.iter().filter(|cause| cause.class != TARGET_DOWN) {
        text.push_str(&format!("# {}\n", line(&cause.line)));
    }
    if report.results.is_empty() {
        text.push_str("# nothing was run\n");
    }
    Ok(visible(&text).into_owned())
}

/// Returns the test point of a result that did not reach a target that is down.
fn unreached(headline: &str, result: &CaseResult, number: usize, is_shown: bool) -> String {
    let key = line(&result.key.to_string());
    match is_shown {
        true => format!(
            "not ok {number} - {key}\n  ---\n  verdict: {}\n  message: {}\n  ...\n",
            result.verdict,
            quoted(headline)
        ),
        false => format!("ok {number} - {key} # SKIP {}\n", line(headline)),
    }
}

fn block(result: &CaseResult) -> String {
    let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
    let mut text = format!("  ---\n  verdict: {}\n  message: {}\n", result.verdict, quoted(&result.explanation));
    if !failing.is_empty() {
        text.push_str(&format!("  requirements: [{}]\n", failing.join(", ")));
    }
    for (name, value) in [("expected", &result.expected), ("actual", &result.actual)] {
        text.push_str(&value.as_ref().map_or_else(String::new, |value| format!("  {name}: {}\n", quoted(value))));
    }
    if let Some(at) = &result.decided_at {
        text.push_str(&format!("  at: {}\n", quoted(&at.to_string())));
    }
    text + "  ...\n"
}

/// Escapes backslashes and number signs, because a number sign starts a directive. Replaces new
/// lines by spaces.
fn line(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#").replace(['\n', '\r'], " ")
}

/// Quotes text for YAML. A JSON string is also a YAML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
