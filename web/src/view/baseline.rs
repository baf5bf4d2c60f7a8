//! The baseline of a target: its entries, and which entries are stale.

use askama::Template;
use weft_suites::model::{CaseKey, ExpectedResult};
use weft_suites::store::Latest;
use weft_suites::targets::Target;

use super::counts::partial;
use super::{time, url};

#[derive(Template)]
#[template(path = "baseline.html")]
struct Page<'a> {
    name: &'a str,
    target: String,
    /// The run that represents the target ([`Latest`]): the address of its page, its start time,
    /// and why it is partial.
    last: Option<(String, String, Option<&'static str>)>,
    is_configured: bool,
    entries: Vec<Entry<'a>>,
    /// Messages of the run in `last` about stale entries, except the messages in `entries`.
    stale: Vec<&'a str>,
}

struct Entry<'a> {
    case: &'a str,
    outcome: String,
    signature: &'a str,
    reason: &'a str,
    /// The link for details, and whether the page is allowed to make the link clickable.
    link: Option<(&'a str, bool)>,
    /// The cases of the run in `last` whose results this entry expects: key and address.
    expects: Vec<(String, String)>,
    /// Why the entry is stale, if it is stale.
    stale: Option<&'a str>,
}

/// Renders the page. `last` has the results that represent the target.
pub(crate) fn baseline(
    name: &str,
    configured: Option<&Target>,
    last: Option<&Latest>,
) -> Result<String, askama::Error> {
    let summary = last.and_then(|last| last.record.summary.as_ref());
    let (expected, stale) = summary.map_or((&[][..], &[][..]), |summary| (&summary.expected, &summary.stale));
    let run = |key: &CaseKey| last.map_or("", |last| last.run_of(key));
    let line = |one: &ExpectedResult| (one.key.to_string(), url::case(run(&one.key), &one.key));
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for entry in configured.map_or(&[][..], Target::baseline) {
        let mine = expected.iter().filter(|one| one.reason == entry.reason && is_about(&entry.case, one));
        entries.push(Entry {
            case: &entry.case,
            outcome: entry.outcome.to_string(),
            signature: &entry.signature,
            reason: &entry.reason,
            link: entry.link.as_deref().map(web_link),
            expects: mine.map(line).collect(),
            stale: stale.iter().map(String::as_str).find(|text| is_about_case(text, &entry.case)),
        });
    }
    if configured.is_none() {
        // Without the target file, only entries that had an effect on the run in `last` are known.
        for one in expected {
            let case = one.entry.as_ref().unwrap_or(&one.key.case);
            match entries.iter_mut().find(|entry| entry.reason == one.reason && entry.case == case) {
                Some(entry) => entry.expects.push(line(one)),
                None => entries.push(Entry {
                    case,
                    outcome: String::new(),
                    signature: "",
                    reason: &one.reason,
                    link: one.link.as_deref().map(web_link),
                    expects: vec![line(one)],
                    stale: None,
                }),
            }
        }
    }
    let is_shown = |words: &str| entries.iter().any(|entry| entry.stale == Some(words));
    let stale = stale.iter().map(String::as_str).filter(|words| !is_shown(words)).collect();
    let last = last.map(|Latest { record, .. }| {
        (url::run(&record.info.id), time::utc(record.info.started_unix_ms), partial(record))
    });
    Page { name, target: url::target(name), last, is_configured: configured.is_some(), entries, stale }.render()
}

/// Returns the link, and whether the page is allowed to make the link clickable. Links with other
/// schemes than `http` and `https` (for example `javascript:`) stay text.
fn web_link(link: &str) -> (&str, bool) {
    (link, link.starts_with("https://") || link.starts_with("http://"))
}

fn is_about(case: &str, one: &ExpectedResult) -> bool {
    match &one.entry {
        Some(entry) => case == entry,
        None => case == one.key.case || case == one.key.to_string(),
    }
}

/// Returns whether a message about a stale entry (`CASE: reason`) is about this case.
fn is_about_case(text: &str, case: &str) -> bool {
    text.strip_prefix(case).is_some_and(|rest| rest.starts_with(": "))
}
