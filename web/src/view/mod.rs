//! Renders the pages: makes the data of the templates from the content of the store. There is one
//! file for each page.
//!
//! Templates escape all data except SVG: the charts of targets, and the ladder diagrams. Charts and
//! ladder diagrams escape their texts and have no inline styles
//! ([`weft_suites::report::LineChart`], [`weft_suites::report::ladder`]).

mod baseline;
pub(crate) mod captures;
mod case;
mod chart;
mod compare;
mod counts;
mod home;
mod login;
mod matrix;
mod operator;
mod pairs;
mod run;
mod runs;
mod sections;
mod target;
mod targets;
mod time;
mod trend;
pub(crate) mod url;

use askama::Template;
use axum::http::StatusCode;

pub(crate) use baseline::baseline;
pub(crate) use case::case;
pub(crate) use compare::compare;
pub(crate) use home::{ComparedTarget, HomePage, home};
pub(crate) use login::login;
pub(crate) use matrix::{Column, Filter, Show, matrix, verdicts};
pub(crate) use operator::OperatorForms;
pub(crate) use pairs::pairs;
pub(crate) use run::{RunPage, run};
pub(crate) use runs::{RunsPart, runs};
pub(crate) use sections::sections;
pub(crate) use target::{TargetPage, target};
pub(crate) use targets::{TargetsPage, targets};

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    status: StatusCode,
    words: &'a str,
}

/// Renders the page for a failed request.
pub(crate) fn error(status: StatusCode, words: &str) -> Result<String, askama::Error> {
    ErrorPage { status, words }.render()
}
