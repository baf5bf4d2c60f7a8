//! Evaluations of runs as JSON: trends, baselines, sections, comparisons, the matrix and the pairs.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use weft_suites::diff::Diff;
use weft_suites::model::Verdict;
use weft_suites::report::sections_of;

use super::super::extract::{Path, Query};
use super::super::{compare, matrix, pairs, sections, targets};
use super::extract::Api;
use super::failure::ApiFailure;
use super::model::{Baseline, Matrix, MatrixLine, Pair, Pairs, RunEntry, SectionEntry, Sections, Trend, UnsteadyEntry};
use crate::app::App;
use crate::failure::Failure;

pub(super) async fn trend(
    State(app): State<App>,
    Api(Path(name)): Api<Path<String>>,
) -> Result<Json<Trend>, ApiFailure> {
    let targets::Trend { runs, mut scores, unsteady } = targets::trend(&app, &name).await?;
    let control = app.starter.state(&name).map(|(_, state)| state);
    let entry = |record: weft_suites::store::RunRecord| {
        let score = scores.remove(&record.info.id);
        RunEntry { score, ..record.into() }
    };
    let runs = runs.into_iter().map(entry).collect();
    let unsteady = unsteady.into_iter().map(|one| UnsteadyEntry { key: one.key, counts: one.counts }).collect();
    Ok(Json(Trend { name, control, runs, unsteady }))
}

pub(super) async fn baseline(
    State(app): State<App>,
    Api(Path(name)): Api<Path<String>>,
) -> Result<Json<Baseline>, ApiFailure> {
    let configured = app.starter.state(&name).map(|(target, _)| target.baseline().to_vec());
    let last = app.store.latest(&name).await?.map(|latest| latest.record).filter(|last| last.summary.is_some());
    if last.is_none() && configured.is_none() {
        return Err(Failure::NotFound("There is no such target, and the store has no run against it.").into());
    }
    let run = last.as_ref().map(|last| last.info.id.clone());
    let (expected, stale) =
        last.and_then(|last| last.summary).map(|summary| (summary.expected, summary.stale)).unwrap_or_default();
    Ok(Json(Baseline { entries: configured.unwrap_or_default(), run, expected, stale }))
}

pub(super) async fn sections(
    State(app): State<App>,
    Api(Path(run)): Api<Path<String>>,
) -> Result<Json<Sections>, ApiFailure> {
    let (_, judged) = sections::judged(&app, &run).await?;
    let entry = |section: weft_suites::report::Section| SectionEntry {
        specification: section.catalogue.specification().to_owned(),
        catalogue: section.catalogue.to_string(),
        section: section.section.to_owned(),
        held: section.pass,
        broken: section.fail,
        undecided: section.undecided,
        observable: section.observable,
    };
    Ok(Json(Sections { sections: sections_of(judged).into_iter().map(entry).collect() }))
}

pub(super) async fn compare(
    State(app): State<App>,
    Api(Query(runs)): Api<Query<compare::Runs>>,
) -> Result<Json<Diff>, ApiFailure> {
    let (_, _, diff) = compare::compared(&app, &runs).await?;
    Ok(Json(diff))
}

pub(super) async fn matrix(
    State(app): State<App>,
    Api(Query(wanted)): Api<Query<matrix::MatrixQuery>>,
) -> Result<Json<Matrix>, ApiFailure> {
    let (columns, left_out) = matrix::columns(&app, &wanted.target).await?;
    let mut lines: BTreeMap<_, Vec<Option<Verdict>>> = BTreeMap::new();
    let filter = wanted.filter();
    for (key, verdicts) in crate::view::verdicts(&columns) {
        if filter.shows(key, &verdicts) {
            lines.insert(key.clone(), verdicts);
        }
    }
    Ok(Json(Matrix {
        runs: columns.iter().map(|column| column.latest.record.clone().into()).collect(),
        left_out,
        cases: lines.into_iter().map(|(key, verdicts)| MatrixLine { key, verdicts }).collect(),
    }))
}

pub(super) async fn pairs(State(app): State<App>) -> Result<Json<Pairs>, ApiFailure> {
    use weft_suites::model::Role;
    const TESTER: &str = "weft";
    let mut pairs = Vec::new();
    for latest in pairs::newest(&app, &app.store.targets().await?).await?.0 {
        let record = &latest.record;
        let name = &record.info.target.name;
        let pair = |initiator: &str, responder: &str| Pair {
            initiator: initiator.to_owned(),
            responder: responder.to_owned(),
            run: record.info.id.clone(),
            status: record.status,
            exit_code: record.summary.as_ref().map(|summary| summary.exit_code),
            partial: record.is_partial(),
            score: latest.score,
        };
        if record.info.target.role.plays(Role::Responder) {
            pairs.push(pair(TESTER, name));
        }
        if record.info.target.role.plays(Role::Initiator) {
            pairs.push(pair(name, TESTER));
        }
    }
    Ok(Json(Pairs { pairs }))
}
