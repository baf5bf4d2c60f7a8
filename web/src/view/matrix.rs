//! The page with the verdicts for all targets (columns). For each target, the page shows the run
//! that represents the target ([`Latest`]).
//!
//! Without a filter, a row is a section of the suites, such as `mpa/7.1.1-key`, with the number of
//! its passed cases. With a filter, a row is a case. A page has at most [`MAX_CELLS`] cells of cases.

use std::collections::BTreeMap;

use askama::Template;
use serde::Deserialize;
use weft_suites::model::{CaseKey, Counts, Verdict};
use weft_suites::store::{Latest, PlannedCase};

use super::counts::{counts, partial};
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
    /// Cases whose verdicts differ between targets. Targets that did not run the case do not count:
    /// those without a verdict, and those to which the case does not apply.
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
    /// The sections, if there is no filter of cases.
    sections: Vec<SectionRow<'a>>,
    /// The cases by section, if there is a filter of cases.
    groups: Vec<Group<'a>>,
    /// Number of cases that are shown, or that the shown sections have.
    shown: usize,
    /// Number of cases that match, but are not shown, because there are too many.
    cut: usize,
    /// Address of the list of sections.
    up: String,
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

/// The counts of a section.
struct SectionRow<'a> {
    name: &'a str,
    href: String,
    /// One cell for each target. `None` if the run has no verdict for a case of the section.
    cells: Vec<Option<SectionCell>>,
}

struct SectionCell {
    /// The worst verdict.
    worst: Verdict,
    /// The numbers of passed cases and of cases that were run.
    text: String,
    /// The numbers of all verdicts.
    title: String,
}

/// The cases of a section.
struct Group<'a> {
    name: &'a str,
    href: String,
    rows: Vec<Row>,
}

struct Row {
    key: String,
    /// One cell for each target: the verdict and the address of the case's page. `None` if the run
    /// has no verdict for this case.
    cells: Vec<Option<(Verdict, String)>>,
}

/// Maximum number of cells of cases on a page, with the names of the cases. With more, the page
/// would be larger than 200 kB.
const MAX_CELLS: usize = 900;

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
    let mut verdicts = verdicts(columns);
    let all = verdicts.len();
    verdicts.retain(|key, row| filter.shows(key, row));
    let matching = verdicts.len();
    let (sections, groups) = if filter.selects_cases() {
        (Vec::new(), groups(columns, filter, &verdicts))
    } else {
        (section_rows(columns, filter, &verdicts), Vec::new())
    };
    let shown = if sections.is_empty() { groups.iter().map(|group| group.rows.len()).sum() } else { matching };
    let heads = columns.iter().map(|column| {
        let record = &column.latest.record;
        Head {
            name: &record.info.target.name,
            href: url::run(&record.info.id),
            started: time::utc(record.info.started_unix_ms),
            partial: partial(record),
        }
    });
    let page = Page {
        heads: heads.collect(),
        sections,
        groups,
        shown,
        cut: matching - shown,
        up: url::matrix("", filter.target),
        hidden: all - matching,
        left_out,
        filter,
        legend: LEGEND,
    };
    page.render()
}

/// Returns the verdicts of each case. The verdicts of a case are in the order of the columns.
pub(crate) fn verdicts(columns: &[Column]) -> Verdicts<'_> {
    let mut verdicts = Verdicts::new();
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

/// The verdicts of cases. The verdicts of a case are in the order of the columns.
pub(crate) type Verdicts<'a> = BTreeMap<&'a CaseKey, Vec<Option<Verdict>>>;

/// Returns the section of a case: its id without the last part.
fn section(key: &CaseKey) -> &str {
    key.case.rsplit_once('/').map_or(key.case.as_str(), |(section, _)| section)
}

fn section_rows<'a>(columns: &[Column], filter: &Filter<'_>, verdicts: &Verdicts<'a>) -> Vec<SectionRow<'a>> {
    let mut sections: BTreeMap<&'a str, Vec<Counts>> = BTreeMap::new();
    for (key, row) in verdicts {
        let counts = sections.entry(section(key)).or_insert_with(|| vec![Counts::default(); columns.len()]);
        for (counts, verdict) in counts.iter_mut().zip(row) {
            if let Some(verdict) = verdict {
                counts.add(*verdict);
            }
        }
    }
    let row = |(name, counts): (&'a str, Vec<Counts>)| SectionRow {
        name,
        href: url::matrix(name, filter.target),
        cells: counts.iter().map(section_cell).collect(),
    };
    sections.into_iter().map(row).collect()
}

fn section_cell(of: &Counts) -> Option<SectionCell> {
    let worst = Verdict::ALL.into_iter().rev().find(|verdict| of.of(*verdict) > 0)?;
    let text = if of.run() > 0 { format!("{}/{}", of.pass, of.run()) } else { "not run".to_owned() };
    let title: Vec<String> = counts(of).iter().map(|count| format!("{} {}", count.number, count.verdict)).collect();
    Some(SectionCell { worst, text, title: title.join(", ") })
}

fn groups<'a>(columns: &[Column], filter: &Filter<'_>, verdicts: &Verdicts<'a>) -> Vec<Group<'a>> {
    let most = MAX_CELLS / (columns.len() + 1);
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (key, row) in verdicts.iter().take(most) {
        let row = Row { key: key.to_string(), cells: cells(columns, key, row) };
        let name = section(key);
        match groups.last_mut() {
            Some(group) if group.name == name => group.rows.push(row),
            _ => groups.push(Group { name, href: url::matrix(name, filter.target), rows: vec![row] }),
        }
    }
    groups
}

impl Filter<'_> {
    /// Returns whether the filter selects cases. Otherwise the page shows the sections.
    fn selects_cases(&self) -> bool {
        !self.case.is_empty() || self.show != Show::All
    }

    /// Returns whether the filter shows the case with this key and these verdicts.
    pub(crate) fn shows(&self, key: &CaseKey, row: &[Option<Verdict>]) -> bool {
        let mut known = row.iter().flatten().filter(|verdict| verdict.has_run());
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
