//! What makes a run fail without a failed case: a rule that is violated in cases about something else, and a stale entry of the baseline.
//!
//! The reports for CI systems list it beside the cases. If no case fails, a system that reads such a report alone would take the run
//! for a success: most look at tests only, and at no total and no element of a suite. So the report marks a case, the first one that
//! shows it. It adds no test and no failure: those are counted as everywhere else.

use std::collections::BTreeMap;

use crate::model::{CaseResult, RunReport, Verdict, on_the_way};
use crate::report::cases;

/// One such thing.
pub(super) struct Beside {
    /// What kind it is of.
    pub(super) class: &'static str,
    /// In a line.
    pub(super) line: String,
    /// The line, the rule and the cases.
    pub(super) text: String,
    /// The place of the result that shows it; `None` if nothing was run.
    shown_by: Option<usize>,
}

/// What makes the run fail, and no case of it.
pub(super) fn beside(report: &RunReport) -> Vec<Beside> {
    let place = |shows: &dyn Fn(&CaseResult) -> bool| report.results.iter().position(shows);
    let broken = on_the_way(&report.summary, &report.results).into_iter().map(|(id, results)| {
        let row = id.row();
        let keys: Vec<String> = results.iter().map(|result| result.key.to_string()).collect();
        let line = format!("also observed: {id} is violated in {}: {}", cases(results.len() as u64), row.summary);
        let text = format!("{line}\n{} {} ({})\nin: {}\n", row.id, row.level, row.role, keys.join(" "));
        let shown_by = place(&|result| results.iter().any(|other| other.key == result.key));
        Beside { class: "also-observed", line, text, shown_by }
    });
    let stale = report.summary.stale.iter().map(|entry| {
        let is_about = |name: &str| entry.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        let shown_by = place(&|result| is_about(&result.key.to_string()) || is_about(&result.key.case));
        // Of an entry that is about no case of the run, any case has to do.
        let shown_by =
            shown_by.or_else(|| place(&|result| result.verdict == Verdict::Pass)).or_else(|| place(&|_| true));
        let line = format!("stale entry of the baseline: {entry}");
        Beside { class: "stale-baseline", text: format!("{line}\n"), line, shown_by }
    });
    broken.chain(stale).collect()
}

/// What is marked, by the place of the result. Nothing if a case of the run counts as a failure or an error.
pub(super) fn marks<'b>(report: &RunReport, beside: &'b [Beside]) -> BTreeMap<usize, Vec<&'b Beside>> {
    let unexpected = |result: &CaseResult| report.summary.expects(result).is_none();
    let mut marks: BTreeMap<usize, Vec<&Beside>> = BTreeMap::new();
    if !report.results.iter().any(|result| result.verdict > Verdict::Pass && unexpected(result)) {
        for one in beside {
            if let Some(place) = one.shown_by {
                marks.entry(place).or_default().push(one);
            }
        }
    }
    marks
}

/// Why a case is marked.
pub(super) fn message(marks: &[&Beside]) -> String {
    let lines: Vec<&str> = marks.iter().map(|one| one.line.as_str()).collect();
    format!("this case does not fail, but the run does: {}", lines.join("; "))
}
