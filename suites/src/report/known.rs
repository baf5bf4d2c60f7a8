//! The results that the baseline expects, as a phrase for the terminal and the Markdown summary.

use crate::model::{CaseResult, Summary, Verdict};

/// Returns what the baseline expects, for example "the baseline expects 64 fail and 7 passes with a
/// violation". `None` if it expects no result. `results` may lack results that passed without a
/// violation.
pub(super) fn expected_text<'a>(summary: &Summary, results: impl Iterator<Item = &'a CaseResult>) -> Option<String> {
    let expected: Vec<Verdict> =
        results.filter(|result| summary.expects(result).is_some()).map(|result| result.verdict).collect();
    let count = |verdict: Verdict| expected.iter().filter(|expected| **expected == verdict).count();
    let others = Verdict::ALL.into_iter().rev().filter(|verdict| *verdict != Verdict::Pass && count(*verdict) > 0);
    let mut parts: Vec<String> = others.map(|verdict| format!("{} {verdict}", count(verdict))).collect();
    let passes = count(Verdict::Pass);
    if passes > 0 {
        let noun = if passes == 1 { "pass" } else { "passes" };
        parts.push(format!("{passes} {noun} with a violation"));
    }
    (!parts.is_empty()).then(|| format!("the baseline expects {}", parts.join(" and ")))
}
