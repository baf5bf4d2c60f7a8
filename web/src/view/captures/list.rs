//! The page with the captures in the folder.

use std::sync::Arc;
use std::time::SystemTime;

use askama::Template;
use weft_dissector::browse::Survey;

use super::common::{Count, counts, octets};
use crate::captures::folder::Entry;
use crate::view::{time, url};

#[derive(Template)]
#[template(path = "captures.html")]
struct Page<'a> {
    has_folder: bool,
    /// The key of an operator's forms.
    form_key: Option<&'a str>,
    most: String,
    lines: Vec<Line>,
    more: usize,
    unread: usize,
}

/// One capture.
pub(crate) struct Line {
    href: String,
    name: String,
    changed: String,
    size: String,
    packets: String,
    counts: Vec<Count>,
    trouble: Option<Arc<str>>,
    is_read: bool,
}

impl Line {
    /// Makes the line of a capture. `known` is the result of reading the capture: the survey or the
    /// error. It is `None` if the server has not read the capture yet.
    pub(crate) fn new(entry: &Entry, known: Option<Result<Arc<Survey>, Arc<str>>>) -> Self {
        let since = entry.source.changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let survey = known.as_ref().and_then(|known| known.as_ref().ok());
        let packets = survey.map(|survey| {
            let part = if survey.note.is_some() { ", incomplete" } else { "" };
            format!("{}{part}", survey.index.rows().len())
        });
        Line {
            href: url::capture(&entry.id),
            name: entry.name.clone(),
            changed: time::utc(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            size: octets(entry.source.len),
            packets: packets.unwrap_or_default(),
            counts: survey.map(|survey| counts(survey.index.counts())).unwrap_or_default(),
            is_read: known.is_some(),
            trouble: known.and_then(Result::err),
        }
    }
}

/// Renders the page. `lines` is `None` if the server has no folder of captures. `more` is the
/// number of captures that are not in `lines`.
pub(crate) fn list(
    lines: Option<Vec<Line>>,
    more: usize,
    form_key: Option<&str>,
    most_upload: u64,
) -> Result<String, askama::Error> {
    let has_folder = lines.is_some();
    let lines = lines.unwrap_or_default();
    let unread = lines.iter().filter(|line| !line.is_read).count();
    Page { has_folder, form_key, most: octets(most_upload), lines, more, unread }.render()
}
