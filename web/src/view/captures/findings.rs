//! The page with the findings of a capture.

use askama::Template;
use weft_core::requirement::Severity;
use weft_dissector::browse::Survey;
use weft_dissector::browse::index::IndexedFinding;

use super::common::{Head, Links, class, part};
use crate::view::url;

#[derive(Template)]
#[template(path = "capture_findings.html")]
struct Page<'a> {
    head: Head,
    severity: Option<Severity>,
    rows: Vec<Line<'a>>,
    first: usize,
    last: usize,
    total: usize,
    left_out: u64,
    pages: Links,
}

struct Line<'a> {
    finding: &'a IndexedFinding,
    summary: &'static str,
    href: String,
    class: &'static str,
}

/// Renders the page with the findings of one severity, or with all findings if `severity` is
/// `None`.
pub(crate) fn findings(
    head: Head,
    survey: &Survey,
    severity: Option<Severity>,
    from: usize,
) -> Result<String, askama::Error> {
    let all = survey.index.findings();
    let wanted: Vec<&IndexedFinding> =
        all.iter().filter(|finding| severity.is_none_or(|one| one == finding.severity)).collect();
    let base = head.base.clone();
    let (range, pages) = part(from, wanted.len(), |from| url::findings(&base, severity, from));
    let rows = wanted[range.clone()].iter().map(|finding| Line {
        finding,
        summary: finding.requirement.row().summary,
        href: url::packet(&base, finding.frame, ""),
        class: class(finding.severity),
    });
    let page = Page {
        severity,
        rows: rows.collect(),
        first: range.start + 1,
        last: range.end,
        total: wanted.len(),
        left_out: survey.index.counts().iter().sum::<u64>().saturating_sub(all.len() as u64),
        pages,
        head,
    };
    page.render()
}
