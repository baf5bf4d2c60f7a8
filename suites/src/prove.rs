//! The kill matrix: every case against the correct twin, which it must pass, and against each deviation that breaks one of its
//! requirements, which it must fail with that requirement named.

use std::path::Path;
use std::sync::Arc;

use weft_peer::hostile::{self, Deviation};

use crate::model::{CaseInfo, CaseResult, Event, Verdict};
use crate::script::Suites;
use crate::target::Target;
use crate::{Filter, RunError, RunOptions, Schedule, run_with};

/// What a case did about a deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// It failed, and named a requirement of its own that the deviation breaks.
    Caught,
    /// It did not; the monitor named one on the way.
    OnTheWay,
    /// Nothing was noticed.
    Missed,
}

/// A deviation with the cases that are about what it breaks.
#[derive(Debug, Clone)]
pub struct Row {
    /// The deviation.
    pub deviation: &'static Deviation,
    /// Each case, by id, and what it did.
    pub cells: Vec<(String, Cell)>,
}

/// The whole matrix.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    /// The cases, by id.
    pub cases: Vec<CaseInfo>,
    /// Results against the correct twin that are no pass.
    pub broken: Vec<CaseResult>,
    /// Cases that do not apply to the twin.
    pub skipped: Vec<String>,
    /// Deviations that the twin is never in a position to commit, and why.
    pub beyond: Vec<(&'static Deviation, &'static str)>,
    /// The others, in the order of their catalogue; those that no case is about are among them.
    pub rows: Vec<Row>,
}

impl Matrix {
    /// Deviations that a case is about and none catches.
    pub fn uncaught(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.cells.is_empty() && !row.cells.iter().any(|(_, cell)| *cell == Cell::Caught))
    }

    /// Deviations that no case is about.
    pub fn without_case(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.cells.is_empty())
    }

    /// Cases that no deviation makes fail.
    pub fn unproven(&self) -> impl Iterator<Item = &CaseInfo> {
        let catches = |case: &CaseInfo| {
            self.rows.iter().flat_map(|row| &row.cells).any(|(id, cell)| *id == case.id && *cell == Cell::Caught)
        };
        self.cases.iter().filter(move |case| !self.skipped.contains(&case.id) && !catches(case))
    }
}

/// Runs the matrix. What each run leaves goes below `out`, in a folder named after the deviation; what an earlier matrix left there is
/// removed.
///
/// # Errors
/// The tester cannot work.
pub async fn prove(suites: &Suites, filter: &Filter, jobs: usize, out: &Path) -> Result<Matrix, RunError> {
    let run = async |target: Target, filter: Filter, folder: &str| {
        let (suites, out) = (suites.clone(), out.join(folder));
        match std::fs::remove_dir_all(&out) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(RunError::Write { path: out, error });
            }
            _ => {}
        }
        let options = RunOptions { target, suites, filter, out, seed: Some(1), cancel: None };
        run_with(options, Schedule { jobs, ..Schedule::default() }, Arc::new(|_: &Event| {})).await
    };
    let correct = run(Target::builtin(), filter.clone(), "correct").await?;
    let mut matrix = Matrix { cases: correct.cases, ..Matrix::default() };
    for case in &matrix.cases {
        let mut results = correct.results.iter().filter(|result| result.key.case == case.id);
        if results.all(|result| !result.verdict.has_run()) {
            matrix.skipped.push(case.id.clone());
        }
    }
    let keys: Vec<_> = correct.results.iter().map(|result| result.key.clone()).collect();
    matrix.broken = correct.results.into_iter().filter(|result| result.verdict > Verdict::Pass).collect();
    for deviation in hostile::all() {
        if let Some(why) = beyond_the_twin(deviation) {
            matrix.beyond.push((deviation, why));
            continue;
        }
        let about: Vec<&CaseInfo> = matrix
            .cases
            .iter()
            .filter(|case| !matrix.skipped.contains(&case.id))
            .filter(|case| case.requirements.iter().any(|requirement| deviation.breaks.contains(requirement)))
            .collect();
        let mut cells = Vec::new();
        if !about.is_empty() {
            let target = Target::builtin().deviating(deviation);
            let of_these = keys.iter().filter(|key| about.iter().any(|case| case.id == key.case)).cloned();
            let report = run(target, Filter::everything().only(of_these), deviation.name).await?;
            for case in about {
                let results = report.results.iter().filter(|result| result.key.case == case.id);
                let best = results.map(|result| cell(result, deviation)).min_by_key(|cell| *cell as u8);
                cells.push((case.id.clone(), best.unwrap_or(Cell::Missed)));
            }
        }
        matrix.rows.push(Row { deviation, cells });
    }
    Ok(matrix)
}

/// Why the builtin responder cannot deviate so.
fn beyond_the_twin(deviation: &Deviation) -> Option<&'static str> {
    if deviation.is_of_initiator() {
        return Some("it is an MPA Initiator's, and the twin is a Responder");
    }
    if is_of_pm_client(deviation.name) {
        return Some("it is a PM Client's, and the twin is a PM Server");
    }
    let of_rejection = ["mpa.sends-after-rejection", "p2p.rejects-unenhanced"].contains(&deviation.name);
    of_rejection.then_some("the twin's services reject nobody")
}

/// What only the client of a port mapper does.
fn is_of_pm_client(name: &str) -> bool {
    const CONDUCT: [&str; 16] = [
        "pm.acknowledges-again",
        "pm.acknowledges-deny",
        "pm.connects-after-deny",
        "pm.heeds-deny-port",
        "pm.ignores-deny",
        "pm.ignores-reset",
        "pm.keeps-asked-address",
        "pm.keeps-denials",
        "pm.keeps-for-ever",
        "pm.keeps-once",
        "pm.never-falls-back",
        "pm.never-repeats",
        "pm.never-stops",
        "pm.repeats-otherwise",
        "pm.takes-later-reply",
        "pm.takes-unasked",
    ];
    name.starts_with("pm.request-") || name.starts_with("pm.ack-") || CONDUCT.contains(&name)
}

fn cell(result: &CaseResult, deviation: &Deviation) -> Cell {
    let broken = result
        .requirements
        .iter()
        .filter(|judged| judged.verdict == Verdict::Fail && deviation.breaks.contains(&judged.requirement));
    let mut found = Cell::Missed;
    for judged in broken {
        match judged.seen_on_the_way {
            false => return Cell::Caught,
            true => found = Cell::OnTheWay,
        }
    }
    found
}
