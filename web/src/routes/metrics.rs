//! Metrics for Prometheus: runs, and the results that represent each target ([`Latest`]). All
//! values come from the store, so a restart of the server changes no value.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use weft_suites::model::{Counts, RunStatus, Score, Verdict};
use weft_suites::store::{Latest, RunRecord, StoreError};

use crate::app::App;
use crate::failure::Failure;

pub(super) async fn page(State(app): State<App>) -> Result<Response, Failure> {
    let text = text(&app).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

async fn text(app: &App) -> Result<String, StoreError> {
    let mut text = String::new();
    let head = |text: &mut String, name: &str, about: &str| {
        let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} gauge");
    };
    head(&mut text, "weft_runs", "Runs in the store.");
    let counts = app.store.counts().await?;
    for status in RunStatus::ALL {
        let number = counts.iter().find(|(other, _)| *other == status).map_or(0, |(_, number)| *number);
        let _ = writeln!(text, "weft_runs{{status=\"{status}\"}} {number}");
    }
    let mut last = Vec::new();
    for target in app.store.targets().await? {
        last.extend(app.store.latest_of(&target).await?);
    }
    head(
        &mut text,
        "weft_last_run_started_seconds",
        "Start of the target's last run: its newest complete run, or its newest partial run if none is complete.",
    );
    for Latest { record: run, .. } in &last {
        let ms = run.info.started_unix_ms;
        let _ = writeln!(text, "weft_last_run_started_seconds{{{}}} {}.{:03}", target(run), ms / 1000, ms % 1000);
    }
    head(&mut text, "weft_last_run_partial", "1 if the target has no complete run: its last run is then partial.");
    for Latest { record: run, .. } in &last {
        let _ = writeln!(text, "weft_last_run_partial{{{}}} {}", target(run), u8::from(run.is_partial()));
    }
    head(&mut text, "weft_last_run_cases", "Cases of the last run by verdict, with the results of its reruns.");
    for Latest { record: run, .. } in &last {
        let Some(summary) = &run.summary else { continue };
        cases(&mut text, &target(run), &summary.counts);
    }
    head(
        &mut text,
        "weft_last_run_requirements",
        "Requirements that the cases of the last run judge, by level and result (untried: no case was applicable).",
    );
    for latest in last.iter().filter(|latest| latest.record.summary.is_some()) {
        requirements(&mut text, &target(&latest.record), latest.score);
    }
    head(
        &mut text,
        "weft_last_run_exit_code",
        "Exit code of the last run, with the results of its reruns; of a later partial run, if only this is not 0.",
    );
    for run in last.iter().map(Latest::deciding) {
        let Some(summary) = &run.summary else { continue };
        let _ = writeln!(text, "weft_last_run_exit_code{{{}}} {}", target(run), summary.exit_code.code());
    }
    Ok(text)
}

fn cases(text: &mut String, target: &str, counts: &Counts) {
    for verdict in Verdict::ALL {
        let _ = writeln!(text, "weft_last_run_cases{{{target},verdict=\"{verdict}\"}} {}", counts.of(verdict));
    }
}

fn requirements(text: &mut String, target: &str, score: Score) {
    for (strength, tally) in score.parts() {
        for (result, number) in [
            ("held", tally.met),
            ("broken", tally.violated),
            ("undecided", tally.undecided),
            ("untried", tally.not_tried),
        ] {
            let _ = writeln!(
                text,
                "weft_last_run_requirements{{{target},level=\"{strength}\",result=\"{result}\"}} {number}"
            );
        }
    }
}

fn target(run: &RunRecord) -> String {
    let name = run.info.target.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("target=\"{name}\"")
}
