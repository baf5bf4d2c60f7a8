//! The page with a table of initiators (rows) and responders (columns). weft is one endpoint of
//! each connection, so only weft's row and weft's column have results.

use askama::Template;
use weft_suites::model::Role;
use weft_suites::store::Latest;

use super::counts::{outcome, partial};
use super::{time, url};

#[derive(Template)]
#[template(path = "pairs.html")]
struct Page {
    responders: Vec<Cell>,
    initiators: Vec<Cell>,
    /// Number of targets that are not shown, because there are too many.
    left_out: usize,
}

/// A target with the run that represents it.
struct Cell {
    name: String,
    target: String,
    run: String,
    started: String,
    score: String,
    class: &'static str,
    words: &'static str,
    /// Why the run is partial.
    partial: Option<&'static str>,
}

/// Renders the page.
pub(crate) fn pairs(newest: &[Latest], left_out: usize) -> Result<String, askama::Error> {
    let of = |role: Role| {
        let plays = move |latest: &&Latest| latest.record.info.target.role.plays(role);
        newest.iter().filter(plays).map(cell).collect()
    };
    Page { responders: of(Role::Responder), initiators: of(Role::Initiator), left_out }.render()
}

fn cell(Latest { record, score, .. }: &Latest) -> Cell {
    let info = &record.info;
    let (class, words) = outcome(record);
    Cell {
        name: info.target.name.clone(),
        target: url::target(&info.target.name),
        run: url::run(&info.id),
        started: time::utc(info.started_unix_ms),
        score: score.to_string(),
        class,
        words,
        partial: partial(record),
    }
}
