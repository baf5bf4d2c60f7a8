//! The page with a table of initiators (rows) and responders (columns). weft is one endpoint of
//! each connection, so only weft's row and weft's column have results.

use askama::Template;
use weft_suites::model::{ExitCode, Role, Summary};
use weft_suites::store::Latest;

use super::counts::partial;
use super::{time, url};

#[derive(Template)]
#[template(path = "pairs.html")]
struct Page {
    responders: Vec<Cell>,
    initiators: Vec<Cell>,
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
pub(crate) fn pairs(newest: &[Latest]) -> Result<String, askama::Error> {
    let of = |role: Role| {
        let plays = move |latest: &&Latest| latest.record.info.target.role.plays(role);
        newest.iter().filter(plays).map(cell).collect()
    };
    Page { responders: of(Role::Responder), initiators: of(Role::Initiator) }.render()
}

fn cell(Latest { record, score, .. }: &Latest) -> Cell {
    let info = &record.info;
    let partial = partial(record);
    let (class, words) = match outcome(record.summary.as_ref()) {
        // The class of a partial run is not `pass`. Therefore only a complete run is green.
        ("pass", words) if partial.is_some() => ("", words),
        outcome => outcome,
    };
    Cell {
        name: info.target.name.clone(),
        target: url::target(&info.target.name),
        run: url::run(&info.id),
        started: time::utc(info.started_unix_ms),
        score: score.to_string(),
        class,
        words,
        partial,
    }
}

/// Returns the CSS class and the text of a cell.
fn outcome(summary: Option<&Summary>) -> (&'static str, &'static str) {
    match summary.map(|summary| summary.exit_code) {
        None => ("", "not finished"),
        Some(ExitCode::AsExpected) => ("pass", "as expected"),
        Some(ExitCode::Unexpected) => ("fail", "fails"),
        Some(ExitCode::NothingRun) => ("", "no case was run"),
        Some(ExitCode::Inconclusive) => ("inconclusive", "undecided"),
        Some(ExitCode::HarnessError) => ("error", "the tester failed"),
    }
}
