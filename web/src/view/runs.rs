//! The list of runs.

use askama::Template;
use weft_suites::clock;
use weft_suites::store::RunRecord;

use super::{Count, counts, time, url};

#[derive(Template)]
#[template(path = "runs.html")]
struct Page<'a> {
    runs: Vec<Line<'a>>,
}

struct Line<'a> {
    record: &'a RunRecord,
    href: String,
    started: String,
    took: String,
    counts: Vec<Count>,
    exit_code: Option<u8>,
}

/// The page.
pub(crate) fn runs(records: &[RunRecord]) -> Result<String, askama::Error> {
    Page { runs: records.iter().map(line).collect() }.render()
}

fn line(record: &RunRecord) -> Line<'_> {
    let RunRecord { info, summary, .. } = record;
    Line {
        record,
        href: url::run(&info.id),
        started: time::utc(info.started_unix_ms),
        took: summary.as_ref().map(|summary| clock::duration(summary.duration_us)).unwrap_or_default(),
        counts: summary.as_ref().map(|summary| counts(&summary.counts)).unwrap_or_default(),
        exit_code: summary.as_ref().map(|summary| summary.exit_code.code()),
    }
}
