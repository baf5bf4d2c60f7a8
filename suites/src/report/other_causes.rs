//! Causes that make a run fail although no case fails. A rule is violated in cases about another
//! rule, an entry of the baseline is stale, the target lost a capability, or the target is down and
//! the baseline expects all results that did not reach it.
//!
//! The reports for CI systems list such causes outside the cases. But most CI systems read only
//! tests, not totals or elements of a suite. If no case failed, they would consider the run a
//! success. So the report marks the first case that shows the cause. The mark adds no test and no
//! failure, so that all reports have the same counts.

use std::collections::BTreeMap;

use crate::model::{CaseResult, RunReport, Verdict, also_observed, skip};
use crate::report::cases;

/// Class of the cause that the target is down. The reports for CI systems already show its headline
/// outside the cases.
pub(super) const TARGET_DOWN: &str = "target-down";

/// One cause.
pub(super) struct OtherCause {
    /// Kind of the cause.
    pub(super) class: &'static str,
    /// One line about the cause.
    pub(super) line: String,
    /// The details: `line`, then the rule and the cases if a rule is violated.
    pub(super) text: String,
    /// Index of the result that shows the cause. `None` if nothing was run.
    shown_by: Option<usize>,
}

/// Returns the causes that belong to no case.
pub(super) fn other_causes(report: &RunReport) -> Vec<OtherCause> {
    let index_of = |shows: &dyn Fn(&CaseResult) -> bool| report.results.iter().position(shows);
    let violated = also_observed(&report.summary, &report.results).into_iter().map(|(id, results)| {
        let row = id.row();
        let keys: Vec<String> = results.iter().map(|result| result.key.to_string()).collect();
        let line = format!("also observed: {id} is violated in {} ({})", cases(results.len() as u64), row.summary);
        let text = format!("{line}\n{} {} ({})\nin: {}\n", row.id, row.level, row.role, keys.join(" "));
        let shown_by = index_of(&|result| results.iter().any(|other| other.key == result.key));
        OtherCause { class: "also-observed", line, text, shown_by }
    });
    let stale = report.summary.stale.iter().map(|entry| {
        let is_about = |name: &str| entry.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        let shown_by = index_of(&|result| is_about(&result.key.to_string()) || is_about(&result.key.case));
        // If the entry concerns no case of the run, mark any case.
        let shown_by =
            shown_by.or_else(|| index_of(&|result| result.verdict == Verdict::Pass)).or_else(|| index_of(&|_| true));
        let line = format!("stale entry of the baseline: {entry}");
        OtherCause { class: "stale-baseline", text: format!("{line}\n"), line, shown_by }
    });
    // Otherwise, a case shows the headline.
    let down = report.summary.target_down.iter().filter(|_| report.headline_at().is_none()).map(|headline| {
        let shown_by = index_of(&CaseResult::is_unreached).or_else(|| index_of(&|_| true));
        OtherCause { class: TARGET_DOWN, line: headline.clone(), text: format!("{headline}\n"), shown_by }
    });
    let lost = report.summary.lost_capabilities.iter().map(|capability| {
        let why = skip::of_capability(*capability, "");
        let shown_by = index_of(&|result| result.verdict == Verdict::NotApplicable && result.explanation == why);
        let shown_by =
            shown_by.or_else(|| index_of(&|result| result.verdict == Verdict::Pass)).or_else(|| index_of(&|_| true));
        let line = format!("the target lost the capability {capability} since an earlier run");
        OtherCause { class: "lost-capability", text: format!("{line}\n"), line, shown_by }
    });
    violated.chain(stale).chain(lost).chain(down).collect()
}

/// Returns the causes to mark, by index of the result. Empty if a case of the run counts as a
/// failure or an error.
pub(super) fn marks<'b>(report: &RunReport, other_causes: &'b [OtherCause]) -> BTreeMap<usize, Vec<&'b OtherCause>> {
    let unexpected = |result: &CaseResult| report.summary.expects(result).is_none();
    let mut marks: BTreeMap<usize, Vec<&OtherCause>> = BTreeMap::new();
    if !report.results.iter().any(|result| result.verdict > Verdict::Pass && unexpected(result)) {
        for cause in other_causes {
            if let Some(index) = cause.shown_by {
                marks.entry(index).or_default().push(cause);
            }
        }
    }
    marks
}

/// Returns the message of a marked case.
pub(super) fn message(marks: &[&OtherCause]) -> String {
    let lines: Vec<&str> = marks.iter().map(|cause| cause.line.as_str()).collect();
    format!("this case does not fail, but the run fails: {}", lines.join("; "))
}
