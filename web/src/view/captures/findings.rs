//! The findings of a capture.

use askama::Template;
use weft_core::requirement::Severity;
use weft_dissector::browse::index::Told;

use super::{Head, Links, class, part};
use crate::captures::read::Survey;
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
    told: &'a Told,
    summary: &'static str,
    href: String,
    class: &'static str,
}

/// The page: those of one severity, or all.
pub(crate) fn findings(
    head: Head,
    survey: &Survey,
    severity: Option<Severity>,
    from: usize,
) -> Result<String, askama::Error> {
    let all = survey.index.findings();
    let wanted: Vec<&Told> = all.iter().filter(|told| severity.is_none_or(|one| one == told.severity)).collect();
    let base = head.base.clone();
    let (range, pages) = part(from, wanted.len(), |from| url::findings(&base, severity, from));
    let rows = wanted[range.clone()].iter().map(|told| Line {
        told,
        summary: told.requirement.row().summary,
        href: url::packet(&base, told.frame, ""),
        class: class(told.severity),
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
