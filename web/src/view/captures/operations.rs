//! The page with the RDMA Reads and atomic operations of a capture, and their latency.

use askama::Template;
use weft_dissector::StreamId;
use weft_dissector::browse::Survey;
use weft_dissector::fact::Operation;

use super::common::{Head, Links, part};
use crate::view::url;

#[derive(Template)]
#[template(path = "capture_operations.html")]
struct Page<'a> {
    head: Head,
    rows: Vec<Line<'a>>,
    first: usize,
    last: usize,
    total: usize,
    left_out: u64,
    pages: Links,
}

struct Line<'a> {
    stream: StreamId,
    operation: &'a Operation,
    href: String,
    answer: String,
    microseconds: String,
}

/// Renders the page.
pub(crate) fn operations(head: Head, survey: &Survey, from: usize) -> Result<String, askama::Error> {
    let base = head.base.clone();
    let all = survey.operations.list();
    let (range, pages) = part(from, all.len(), |from| url::part(&base, "operations", from));
    let rows = all[range.clone()].iter().map(|(stream, operation)| Line {
        stream: *stream,
        operation,
        href: url::packet(&base, operation.frames.0, ""),
        answer: url::packet(&base, operation.frames.1, ""),
        microseconds: format!("{}.{}", operation.latency / 1000, operation.latency / 100 % 10),
    });
    let page = Page {
        rows: rows.collect(),
        first: range.start + 1,
        last: range.end,
        total: all.len(),
        left_out: survey.operations.omitted(),
        pages,
        head,
    };
    page.render()
}
