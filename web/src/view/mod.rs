//! Pages: the data of the templates, made from the content of the store. One file for each page.
//!
//! Templates escape their data. Only SVG is passed as markup: the chart of a target, and the ladder
//! diagram, which escapes its texts and has no inline styles ([`weft_suites::report::ladder`]).

mod baseline;
pub(crate) mod captures;
mod case;
mod chart;
mod compare;
mod hand;
mod login;
mod matrix;
mod pairs;
mod run;
mod runs;
mod sections;
mod target;
mod time;
pub(crate) mod url;

use askama::Template;
use axum::http::StatusCode;
use weft_suites::model::{Counts, RunStatus, Verdict};
use weft_suites::store::RunRecord;

pub(crate) use baseline::baseline;
pub(crate) use case::case;
pub(crate) use compare::compare;
pub(crate) use hand::Hand;
pub(crate) use login::login;
pub(crate) use matrix::{Column, Filter, Show, matrix, verdicts};
pub(crate) use pairs::pairs;
pub(crate) use run::{RunPage, run};
pub(crate) use runs::{Shown, runs};
pub(crate) use sections::sections;
pub(crate) use target::{TargetPage, target, targets};

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    status: StatusCode,
    words: &'a str,
}

/// The page for a failed request.
pub(crate) fn error(status: StatusCode, words: &str) -> Result<String, askama::Error> {
    ErrorPage { status, words }.render()
}

/// Why a run is partial, so that it does not represent its target; `None` if it is complete.
fn partial(record: &RunRecord) -> Option<&'static str> {
    match record.status {
        _ if !record.is_partial() => None,
        _ if record.info.rerun_of.is_some() => Some("partial: a rerun"),
        _ if record.info.is_selection => Some("partial: lacks variants of the default tier"),
        RunStatus::Planned | RunStatus::WaitingForTarget | RunStatus::Running => Some("partial: not finished"),
        RunStatus::Done | RunStatus::Cancelled | RunStatus::Broken => Some("partial: stopped"),
    }
}

/// The number of cases with a verdict.
struct Count {
    verdict: Verdict,
    number: u64,
}

/// The verdicts that occur, worst first.
fn counts(counts: &Counts) -> Vec<Count> {
    let order = Verdict::ALL.into_iter().rev();
    order.map(|verdict| Count { verdict, number: counts.of(verdict) }).filter(|count| count.number > 0).collect()
}
