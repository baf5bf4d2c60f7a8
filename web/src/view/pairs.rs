//! Initiators against responders. One end of each connection is the tester, so the table has its row and its column filled and no more.

use askama::Template;
use weft_suites::model::{ExitCode, Role, Score, Summary};
use weft_suites::store::RunRecord;

use super::{score, time, url};

#[derive(Template)]
#[template(path = "pairs.html")]
struct Page {
    responders: Vec<Cell>,
    initiators: Vec<Cell>,
}

/// A target with its newest run.
struct Cell {
    name: String,
    target: String,
    run: String,
    started: String,
    score: String,
    class: &'static str,
    words: &'static str,
}

/// The page.
pub(crate) fn pairs(newest: &[(RunRecord, Score)]) -> Result<String, askama::Error> {
    let of =
        |role: Role| newest.iter().filter(move |(record, _)| record.info.target.role.plays(role)).map(cell).collect();
    Page { responders: of(Role::Responder), initiators: of(Role::Initiator) }.render()
}

fn cell((record, score): &(RunRecord, Score)) -> Cell {
    let info = &record.info;
    let (class, words) = outcome(record.summary.as_ref());
    Cell {
        name: info.target.name.clone(),
        target: url::target(&info.target.name),
        run: url::run(&info.id),
        started: time::utc(info.started_unix_ms),
        score: score::words(score),
        class,
        words,
    }
}

/// A class, and words for it.
fn outcome(summary: Option<&Summary>) -> (&'static str, &'static str) {
    match summary.map(|summary| summary.exit_code) {
        None => ("", "no end yet"),
        Some(ExitCode::AsExpected) => ("pass", "as expected"),
        Some(ExitCode::Unexpected) => ("fail", "fails"),
        Some(ExitCode::NothingRun) => ("", "nothing run"),
        Some(ExitCode::Inconclusive) => ("inconclusive", "undecided"),
        Some(ExitCode::HarnessError) => ("error", "fault of the tester"),
    }
}
