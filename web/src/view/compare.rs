//! The page with the differences between two runs.

use askama::Template;
use weft_suites::diff::{Change, Diff, ObservedViolation};
use weft_suites::model::{RunInfo, Verdict};

use super::{time, url};

#[derive(Template)]
#[template(path = "compare.html")]
struct Page<'a> {
    before: Side<'a>,
    after: Side<'a>,
    /// The address of the same comparison, but with `before` and `after` swapped.
    turned: String,
    lists: Vec<(&'static str, Vec<Line>)>,
    observations: Vec<(&'static str, &'a [ObservedViolation])>,
    same: usize,
}

struct Side<'a> {
    info: &'a RunInfo,
    href: String,
    started: String,
}

struct Line {
    key: String,
    before: Option<(Verdict, String)>,
    after: Option<(Verdict, String)>,
    text: String,
}

/// Renders the page.
pub(crate) fn compare(before: &RunInfo, after: &RunInfo, diff: &Diff) -> Result<String, askama::Error> {
    let line = |change: &Change| Line {
        key: change.key.to_string(),
        before: change.before.map(|verdict| (verdict, url::case(&before.id, &change.key))),
        after: change.after.map(|verdict| (verdict, url::case(&after.id, &change.key))),
        text: change.text.clone(),
    };
    let lists = diff.lists().filter(|(_, changes)| !changes.is_empty());
    let lists = lists.map(|(name, changes)| (name, changes.iter().map(line).collect())).collect();
    let page = Page {
        before: side(before),
        after: side(after),
        turned: url::compare(&after.id, &before.id),
        lists,
        observations: diff.observations().filter(|(_, observed)| !observed.is_empty()).collect(),
        same: diff.same,
    };
    page.render()
}

fn side(info: &RunInfo) -> Side<'_> {
    Side { info, href: url::run(&info.id), started: time::utc(info.started_unix_ms) }
}
