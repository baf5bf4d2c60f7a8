//! Pages: the data of the templates, made from the content of the store. One file for each page.
//!
//! Templates escape their data. Only SVG is passed as markup: the chart of a target, and the ladder
//! diagram, which escapes its texts and has no inline styles ([`weft_suites::report::ladder`]).

mod baseline;
pub(crate) mod captures;
mod case;
mod chart;
mod compare;
mod counts;
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
