//! The list of the packets of a capture, divided into pages.

use askama::Template;
use weft_dissector::FrameNumber;
use weft_dissector::browse::index::{Index, Row};
use weft_dissector::browse::{FrameList, Survey};
use weft_dissector::output::text::counted;

use super::answers::{Answers, answers};
use super::common::{Head, Links, class, pair, part, seconds};
use crate::view::url;

#[derive(Template)]
#[template(path = "packets.html")]
struct Page<'a> {
    head: Head,
    filter: &'a str,
    /// The error in the filter, if the filter is invalid.
    wrong: Option<String>,
    /// What happened on the connections. Empty if this is not the first page of all packets.
    answers: Answers<'a>,
    rows: Vec<Line>,
    first: usize,
    last: usize,
    listed: usize,
    pages: Links,
}

struct Line {
    href: String,
    number: FrameNumber,
    seconds: String,
    from: String,
    to: String,
    octets: u32,
    words: String,
    class: &'static str,
    findings: String,
}

/// The list of selected packets.
pub(crate) struct List<'a> {
    /// The display filter. Empty for all packets.
    pub(crate) filter: &'a str,
    /// Numbers of the packets that match the filter. `None` if there is no filter.
    pub(crate) passed: Option<&'a FrameList>,
    /// Index, in the list, of the first packet on the page.
    pub(crate) from: usize,
}

impl List<'_> {
    /// Returns the number of packets in the list.
    pub(crate) fn len(&self, index: &Index) -> usize {
        self.passed.map_or(index.rows().len(), FrameList::len)
    }

    /// Returns the packet at index `at` of the list.
    pub(crate) fn row<'i>(&self, index: &'i Index, at: usize) -> Option<&'i Row> {
        let place = match self.passed {
            Some(passed) => index.find(passed.get(at)?)?,
            None => at,
        };
        index.rows().get(place)
    }
}

/// Renders the page.
pub(crate) fn packets(head: Head, survey: &Survey, list: &List<'_>) -> Result<String, askama::Error> {
    let index = &survey.index;
    let is_first = list.filter.is_empty() && list.from == 0;
    let answers = if is_first { answers(&head.base, survey) } else { Answers::default() };
    let listed = list.len(index);
    let base = head.base.clone();
    let (range, pages) = part(list.from, listed, |from| url::packets(&base, list.filter, from));
    let origin = index.rows().first().map_or(0, |row| row.time);
    let rows =
        range.clone().filter_map(|at| list.row(index, at)).map(|row| line(&head.base, list.filter, index, row, origin));
    let page = Page {
        filter: list.filter,
        wrong: None,
        answers,
        rows: rows.collect(),
        first: range.start + 1,
        last: range.end,
        listed,
        pages,
        head,
    };
    page.render()
}

/// Renders the page for an invalid filter. `wrong` has the error message, and a line that points at
/// the position of the error.
pub(crate) fn invalid(head: Head, filter: &str, wrong: String) -> Result<String, askama::Error> {
    let (answers, rows, pages) = (Answers::default(), Vec::new(), Vec::new());
    Page { head, filter, wrong: Some(wrong), answers, rows, first: 0, last: 0, listed: 0, pages }.render()
}

fn line(base: &str, filter: &str, index: &Index, row: &Row, origin: u64) -> Line {
    let (from, to) = pair(index.ends(row));
    let findings = row.worst.map(|worst| match row.findings {
        1 => worst.to_string(),
        several => format!("{}, {worst}", counted(several.into(), "finding")),
    });
    Line {
        href: url::packet(base, row.number, filter),
        number: row.number,
        seconds: seconds(row.time.saturating_sub(origin)),
        from,
        to,
        octets: row.wire_len,
        words: index.text(row),
        class: row.worst.map_or("", class),
        findings: findings.unwrap_or_default(),
    }
}
