//! The TAP report (version 14): a test point a result, with a YAML block where one is not ok.
//!
//! Not applicable and unimplemented cases are skipped; what the baseline expects is marked TODO, which TAP's readers do not count
//! as a failure.

use super::ReportError;
use crate::model::{CaseResult, RunReport, Verdict};

/// The report as TAP.
///
/// # Errors
/// None that this model is known to have.
pub fn tap(report: &RunReport) -> Result<String, ReportError> {
    let mut text = format!("TAP version 14\n1..{}\n", report.results.len());
    for (number, result) in (1..).zip(&report.results) {
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
    if report.results.is_empty() {
        text.push_str("# nothing was run\n");
    }
    Ok(text)
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

/// A number sign would begin a directive, a new line a new point.
fn line(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#").replace(['\n', '\r'], " ")
}

/// A string of JSON is one of YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
