//! Finds the runs and cases that a request names.

use weft_suites::model::CaseKey;
use weft_suites::store::{RunDetail, RunRecord};

use crate::app::App;
use crate::failure::Failure;

/// Returns the run `id` without its plan, or [`Failure::NotFound`].
pub(super) async fn find_record(app: &App, id: &str) -> Result<RunRecord, Failure> {
    app.store.record(id).await?.ok_or(Failure::NotFound("The store has no such run."))
}

/// Returns the run `id` with its plan, or [`Failure::NotFound`].
pub(super) async fn find_run(app: &App, id: &str) -> Result<RunDetail, Failure> {
    app.store.run(id).await?.ok_or(Failure::NotFound("The store has no such run."))
}

/// Returns the case with this path, and the index of the case in the plan of `run`.
pub(super) fn find_case(run: &RunDetail, path: &str) -> Result<(usize, CaseKey), Failure> {
    let mut planned = run.planned.iter().enumerate();
    let found = planned.find(|(_, case)| case.key.path() == path);
    found.map(|(at, case)| (at, case.key.clone())).ok_or(Failure::NotFound("The run has no such case."))
}
