//! The page with the list of runs.

use std::collections::BTreeMap;

use askama::Template;
use weft_suites::clock;
use weft_suites::model::{RunInfo, Score, Summary};
use weft_suites::store::{RunRecord, TargetRecord};

use super::counts::{Count, counts, partial};
use super::{time, url};

/// The part of the list that the page shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunsPart<'a> {
    pub(crate) target: Option<&'a str>,
    /// Only runs with this label, `KEY=VALUE`.
    pub(crate) label: Option<&'a str>,
    pub(crate) before: Option<&'a str>,
    /// Whether there are older runs.
    pub(crate) is_more: bool,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Page<'a> {
    runs: Vec<Line<'a>>,
    targets: &'a [TargetRecord],
    shown: RunsPart<'a>,
    newest: String,
    older: Option<String>,
}

/// A run in a list.
pub(super) struct Line<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) href: String,
    pub(super) started: String,
    pub(super) took: String,
    pub(super) counts: Vec<Count>,
    /// The numbers of violated requirements, by level, for example `3 MUST`.
    pub(super) failing: String,
    /// The numbers of met requirements, by level.
    pub(super) score: String,
    pub(super) target_href: String,
    /// The labels as `KEY=VALUE`, each with the address of the runs that have it.
    pub(super) labels: Vec<(String, String)>,
    pub(super) exit_code: Option<u8>,
    /// Why the run is partial.
    pub(super) partial: Option<&'static str>,
    /// Address of the comparison with the previous run.
    pub(super) compare: Option<String>,
}

/// Renders the page.
pub(crate) fn runs(
    records: &[RunRecord],
    scores: &BTreeMap<String, Score>,
    targets: &[TargetRecord],
    shown: RunsPart<'_>,
) -> Result<String, askama::Error> {
    let last = records.last().filter(|_| shown.is_more);
    Page {
        runs: records.iter().map(|record| line(record, scores.get(&record.info.id))).collect(),
        targets,
        shown,
        newest: url::runs(shown.target, shown.label, None),
        older: last.map(|last| url::runs(shown.target, shown.label, Some(&last.info.id))),
    }
    .render()
}

/// Makes the line of a run, without the address of a comparison.
pub(super) fn line<'a>(record: &'a RunRecord, score: Option<&Score>) -> Line<'a> {
    let RunRecord { info, summary, .. } = record;
    Line {
        record,
        href: url::run(&info.id),
        started: time::utc(info.started_unix_ms),
        took: summary.as_ref().map(|summary| clock::duration(summary.duration_us)).unwrap_or_default(),
        counts: summary.as_ref().map(|summary| counts(&summary.counts)).unwrap_or_default(),
        failing: summary.as_ref().map(failing).unwrap_or_default(),
        score: score.map(ToString::to_string).unwrap_or_default(),
        target_href: url::target(&info.target.name),
        labels: labels(info),
        exit_code: summary.as_ref().map(|summary| summary.exit_code.code()),
        partial: partial(record),
        compare: None,
    }
}

/// Returns the labels of a run as `KEY=VALUE`, each with the address of the runs that have it.
pub(super) fn labels(info: &RunInfo) -> Vec<(String, String)> {
    let texts = info.labels.iter().map(|(name, value)| format!("{name}={value}"));
    texts.map(|text| (text.clone(), url::runs(None, Some(&text), None))).collect()
}

fn failing(summary: &Summary) -> String {
    let mut levels: BTreeMap<String, usize> = BTreeMap::new();
    for id in &summary.failing {
        *levels.entry(id.row().level.to_string()).or_default() += 1;
    }
    levels.iter().map(|(level, number)| format!("{number} {level}")).collect::<Vec<_>>().join(", ")
}
