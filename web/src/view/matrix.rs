//! The page with the verdicts of all cases (rows) for all targets (columns). For each target, the
//! page shows the run that represents the target ([`Latest`]).

use std::collections::BTreeMap;

use askama::Template;
use serde::Deserialize;
use weft_suites::model::{CaseKey, Verdict};
use weft_suites::store::{Latest, PlannedCase};

use super::counts::partial;
use super::{time, url};

/// The data of one target.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) latest: Latest,
    pub(crate) planned: Vec<PlannedCase>,
}

/// Which cases the page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Show {
    /// All cases.
    #[default]
    All,
    /// Cases that a target fails.
    Failing,
    /// Cases whose verdicts differ between targets. Targets without a verdict do not count.
    Differing,
}

/// The filter of the matrix.
#[derive(Debug)]
pub(crate) struct Filter<'a> {
    /// Shows only targets whose name contains this text.
    pub(crate) target: &'a str,
    /// Shows only cases whose key contains this text.
    pub(crate) case: &'a str,
    pub(crate) show: Show,
}

#[derive(Template)]
#[template(path = "matrix.html")]
struct Page<'a> {
    heads: Vec<Head<'a>>,
    rows: Vec<Row>,
    /// Number of cases that the filter excludes.
    hidden: usize,
    /// Number of targets that are not shown, because there are too many.
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
    /// One cell for each target: the verdict and the address of the case's page. `None` if the run
    /// has no verdict for this case.
    cells: Vec<Option<(Verdict, String)>>,
}

const LEGEND: [(Verdict, &str); 6] = [
    (Verdict::Pass, "the requirement was met"),
    (Verdict::Fail, "a requirement was violated"),
    (Verdict::Inconclusive, "the observations do not show whether the requirement was met"),
    (Verdict::Error, "the tester failed"),
    (Verdict::NotApplicable, "the target lacks the role or a capability that the case needs"),
    (Verdict::Unimplemented, "the target reports that it does not implement the tested function"),
];

/// Renders the page.
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

/// Returns the verdicts of each case. The verdicts of a case are in the order of the columns.
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
    /// Returns whether the filter shows the case with this key and these verdicts.
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
