//! For Prometheus: runs, and what one of each target came to: the newest that came to its end, or, where none did, the newest. Everything is read from the store, so that it is true after a
//! restart too.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use weft_suites::model::{Counts, RunStatus, Verdict};
use weft_suites::store::{RunRecord, StoreError};

use crate::app::{App, Failure};

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
        last.extend(app.store.record(&target.last).await?);
    }
    head(
        &mut text,
        "weft_last_run_started_seconds",
        "Start, since 1970, of the target's newest run that came to its end; where none did, of the newest.",
    );
    for run in &last {
        let ms = run.info.started_unix_ms;
        let _ = writeln!(text, "weft_last_run_started_seconds{{{}}} {}.{:03}", target(run), ms / 1000, ms % 1000);
    }
    head(
        &mut text,
        "weft_last_run_cases",
        "Cases by verdict of the target's newest run that came to its end; where none did, of the newest that was stopped.",
    );
    for run in &last {
        let Some(summary) = &run.summary else { continue };
        cases(&mut text, &target(run), &summary.counts);
    }
    head(
        &mut text,
        "weft_last_run_exit_code",
        "Exit code of the target's newest run that came to its end; where none did, of the newest that was stopped.",
    );
    for run in &last {
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

fn target(run: &RunRecord) -> String {
    let name = run.info.target.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("target=\"{name}\"")
}
