//! The causes of a run as lists of text with links, for the HTML report and the page of a run. A
//! list has a first part, and a second part that the page folds.

use weft_core::Requirement;
use weft_dissector::output::text::counted;

use super::causes::Cause;
use super::overview::Overview;
use crate::model::{CaseKey, Verdict};

/// Maximum number of causes of failures that are not folded.
const SHOWN_FAILURES: usize = 12;
/// Maximum number of causes of errors, and of inconclusive results, that are not folded.
const SHOWN: usize = 5;

/// The causes of one verdict.
pub struct CauseList {
    /// Title of the list.
    pub title: &'static str,
    /// The verdict of the results.
    pub verdict: Verdict,
    /// The first causes.
    pub shown: Vec<CauseLine>,
    /// The other causes.
    pub folded: Vec<CauseLine>,
}

/// A cause as text.
pub struct CauseLine {
    /// The verdict of the results.
    pub verdict: Verdict,
    /// The violated requirements.
    pub rows: Vec<&'static Requirement>,
    /// Whether the violation was only observed in cases about other requirements.
    pub also_observed: bool,
    /// What the first result expected.
    pub expected: Option<String>,
    /// What was observed, or why there is no decision.
    pub text: String,
    /// Number of results, with the word `case`. `None` if the number is not known.
    pub count: Option<String>,
    /// The first results: address and name.
    pub links: Vec<(String, String)>,
    /// Number of results that have no link here.
    pub more: usize,
}

impl Overview {
    /// Returns the causes of failures, errors and inconclusive results. Empty lists are left out.
    /// `href` returns the address of a result.
    #[must_use]
    pub fn cause_lists(&self, href: impl Fn(&CaseKey) -> String) -> Vec<CauseList> {
        let lists = [
            ("Failures by cause", Verdict::Fail, &self.failures, SHOWN_FAILURES),
            ("Errors of weft, of its machine or of a script", Verdict::Error, &self.errors, SHOWN),
            ("No decision", Verdict::Inconclusive, &self.inconclusive, SHOWN),
        ];
        let list = |(title, verdict, causes, shown): (&'static str, Verdict, &Vec<Cause>, usize)| {
            let mut lines: Vec<CauseLine> = causes.iter().map(|cause| line(verdict, cause, &href)).collect();
            let folded = lines.split_off(shown.min(lines.len()));
            CauseList { title, verdict, shown: lines, folded }
        };
        lists.into_iter().map(list).filter(|list| !list.shown.is_empty()).collect()
    }
}

fn line(verdict: Verdict, cause: &Cause, href: &impl Fn(&CaseKey) -> String) -> CauseLine {
    CauseLine {
        verdict,
        rows: cause.requirements.iter().map(|id| id.row()).collect(),
        also_observed: cause.also_observed,
        expected: cause.expected.clone(),
        text: cause.text.clone(),
        count: (cause.results > 0).then(|| counted(cause.results as u64, "case")),
        links: cause.named.iter().map(|key| (href(key), key.to_string())).collect(),
        more: cause.more(),
    }
}
