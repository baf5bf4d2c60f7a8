//! The details of a result that did not pass, for reports that show a test as plain text.

use super::command::command;
use crate::model::{CaseResult, RunReport, Verdict};

/// Returns the violated requirements, what was expected and observed, where this was decided, and
/// for a failure the command that runs the variant again. Each part is a line.
pub(super) fn details(report: &RunReport, result: &CaseResult) -> String {
    let mut text = String::new();
    for judged in result.requirements.iter().filter(|judged| judged.verdict == Verdict::Fail) {
        let row = judged.requirement.row();
        text.push_str(&format!("{} {} ({}): {}\n", row.id, row.level, row.role, row.summary));
        if let Some(sentence) = row.sentence {
            text.push_str(&format!("{}: \"{sentence}\"\n", row.citation()));
        }
    }
    for (name, value) in [("expected", &result.expected), ("actual", &result.actual)] {
        text.push_str(&value.as_ref().map_or_else(String::new, |value| format!("{name}: {value}\n")));
    }
    if let Some(at) = &result.decided_at {
        text.push_str(&format!("at: {at}\n"));
    }
    if let Some(decision) = result.decision() {
        text.push_str(&format!("decided at: {decision}\n"));
    }
    if result.verdict == Verdict::Fail {
        text.push_str(&format!("again: {}\n", command(&report.run, &result.key)));
    }
    text
}
