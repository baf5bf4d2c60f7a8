//! The verdicts of the run that represents each target, by case.

use std::collections::BTreeMap;

use askama::Template;
use serde::Deserialize;
use weft_suites::model::{CaseKey, Verdict};
use weft_suites::store::{Latest, PlannedCase};

use super::counts::partial;
use super::{time, url};

/// One target.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) latest: Latest,
    pub(crate) planned: Vec<PlannedCase>,
}

/// Which cases are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Show {
    /// All cases.
    #[default]
    All,
    /// Cases that a target fails.
    Failing,
    /// Cases whose verdicts differ, among the targets that have one.
    Differing,
}

/// The filter of the matrix.
#[derive(Debug)]
pub(crate) struct Filter<'a> {
    /// Part of the name of a target.
    pub(crate) target: &'a str,
    /// Part of the key of a case.
    pub(crate) case: &'a str,
    pub(crate) show: Show,
}

#[derive(Template)]
#[template(path = "matrix.html")]
struct Page<'a> {
    heads: Vec<Head<'a>>,
    rows: Vec<Row>,
    /// Number of rows that the filter excludes.
    hidden: usize,
    /// Number of targets over the limit.
    left_out: usize,
    filter: &'a Filter<'a>,
    legend: [(Verdict, &'static str); 6],
}

struct Head<'a> {
    name: &'a str,
    href: String,
    started: String,
    /// Why the run is partial.
    partial: Option<&'static str>,
}

struct Row {
    key: String,
    /// A verdict with the address of its page; `None` if the run of the target has none.
    cells: Vec<Option<(Verdict, String)>>,
}

const LEGEND: [(Verdict, &str); 6] = [
    (Verdict::Pass, "the requirement was met"),
    (Verdict::Fail, "a requirement was violated"),
    (Verdict::Inconclusive, "the observations do not decide it"),
    (Verdict::Error, "the tester failed"),
    (Verdict::NotApplicable, "the target has another role, or lacks a capability"),
    (Verdict::Unimplemented, "the target reports that it does not implement this"),
];

/// The page.
pub(crate) fn matrix(columns: &[Column], left_out: usize, filter: &Filter<'_>) -> Result<String, askama::Error> {
    let verdicts = verdicts(columns);
    let all = verdicts.len();
    let shown = verdicts.into_iter().filter(|(key, row)| filter.shows(key, row));
    let rows: Vec<Row> =
        shown.map(|(key, row)| Row { key: key.to_string(), cells: cells(columns, key, &row) }).collect();
    let heads = columns.iter().map(|column| {
        let record = &column.latest.record;
        Head {
            name: &record.info.target.name,
            href: url::run(&record.info.id),
            started: time::utc(record.info.started_unix_ms),
            partial: partial(record),
        }
    });
    Page { heads: heads.collect(), hidden: all - rows.len(), rows, left_out, filter, legend: LEGEND }.render()
}

/// The verdicts of each case, in the order of the columns.
pub(crate) fn verdicts(columns: &[Column]) -> BTreeMap<&CaseKey, Vec<Option<Verdict>>> {
    let mut verdicts: BTreeMap<&CaseKey, Vec<Option<Verdict>>> = BTreeMap::new();
    for (at, column) in columns.iter().enumerate() {
        for case in &column.planned {
            let row = verdicts.entry(&case.key).or_insert_with(|| vec![None; columns.len()]);
            if let Some(cell) = row.get_mut(at) {
                *cell = case.verdict;
            }
        }
    }
    verdicts
}

impl Filter<'_> {
    /// Does the case of `key`, with these verdicts, pass the filter?
    pub(crate) fn shows(&self, key: &CaseKey, row: &[Option<Verdict>]) -> bool {
        let mut known = row.iter().flatten();
        let by_verdict = match self.show {
            Show::All => true,
            Show::Failing => known.any(|verdict| *verdict == Verdict::Fail),
            Show::Differing => known.next().is_some_and(|first| known.any(|verdict| verdict != first)),
        };
        by_verdict && (self.case.is_empty() || key.to_string().contains(self.case))
    }
}

fn cells(columns: &[Column], key: &CaseKey, row: &[Option<Verdict>]) -> Vec<Option<(Verdict, String)>> {
    let cell =
        |(column, verdict): (&Column, &Option<Verdict>)| Some(((*verdict)?, url::case(column.latest.run_of(key), key)));
    columns.iter().zip(row).map(cell).collect()
}
