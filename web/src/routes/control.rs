//! Starting and stopping runs. The door admits only operators.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use tokio::sync::oneshot;
use weft_suites::model::Tier;

use super::ask::{Form, Path};
use super::find::{find_case, find_run};
use crate::app::App;
use crate::failure::Failure;
use crate::starter::{Again, Wanted};
use crate::view::url;

/// How long an answer waits for the start of a run, to redirect to its page.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 3 });

#[derive(Deserialize)]
pub(super) struct Wish {
    #[serde(default)]
    select: String,
    #[serde(default)]
    tier: String,
    #[serde(default)]
    seed: String,
    #[serde(default)]
    resume: String,
}

pub(super) async fn start(
    State(app): State<App>,
    Path(target): Path<String>,
    Form(wish): Form<Wish>,
) -> Result<Response, Failure> {
    let unclear = |what: &str| Failure::Unclear(what.to_owned());
    let tier = match wish.tier.as_str() {
        "" => Tier::default(),
        word => word.parse().map_err(Failure::Unclear)?,
    };
    let seed = match wish.seed.trim() {
        "" => None,
        number => Some(number.parse().map_err(|_| unclear("A seed is a number from 0 to 18446744073709551615."))?),
    };
    let wanted = match wish.resume.is_empty() {
        true => {
            let words: Vec<&str> = wish.select.split_whitespace().collect();
            app.starter.wanted(&words, tier, seed)?
        }
        false => resumed(&app, &target).await?,
    };
    begin(&app, &target, wanted).await
}

/// Resumes the newest unfinished run against a target.
pub(super) async fn resumed(app: &App, target: &str) -> Result<Wanted, Failure> {
    use crate::starter::NotTaken::{NoRun, Unknown};
    let (_, state) = app.starter.state(target).ok_or(Unknown)?;
    let run = app.watch.unless_gone(app.store.unfinished(target)).await??.ok_or(NoRun)?;
    // It is already running.
    if state.running.is_some_and(|job| job.run.as_ref() == Some(&run)) {
        return Err(NoRun.into());
    }
    Ok(Wanted { resume: true, about: format!("the rest of run {run}"), ..Wanted::default() })
}

async fn begin(app: &App, target: &str, wanted: Wanted) -> Result<Response, Failure> {
    let (_, begins) = app.starter.start(target, wanted)?;
    Ok(Redirect::to(&place(target, begins).await).into_response())
}

/// The page of the run if it starts soon, otherwise the page of its target.
async fn place(target: &str, begins: oneshot::Receiver<String>) -> String {
    match tokio::time::timeout(PATIENCE, begins).await {
        Ok(Ok(run)) => url::run(&run),
        _ => url::target(target),
    }
}

#[derive(Deserialize)]
pub(super) struct Stopped {
    job: u64,
}

pub(super) async fn stop(
    State(app): State<App>,
    Path(target): Path<String>,
    Form(stopped): Form<Stopped>,
) -> Result<Response, Failure> {
    let running = app.starter.state(&target).and_then(|(_, state)| state.running);
    app.starter.stop(&target, stopped.job)?;
    let run = running.filter(|job| job.id == stopped.job).and_then(|job| job.run);
    Ok(Redirect::to(&run.map_or_else(|| url::target(&target), |run| url::run(&run))).into_response())
}

#[derive(Deserialize)]
pub(super) struct Repeated {
    which: String,
    #[serde(default)]
    case: String,
}

pub(super) async fn again(
    State(app): State<App>,
    Path(run): Path<String>,
    Form(wish): Form<Repeated>,
) -> Result<Response, Failure> {
    let (target, wanted) = repeated(&app, &run, &wish.which, &wish.case).await?;
    begin(&app, &target, wanted).await
}

/// The target of an earlier run, and a rerun of its cases.
pub(super) async fn repeated(app: &App, run: &str, which: &str, case: &str) -> Result<(String, Wanted), Failure> {
    let detail = app.watch.unless_gone(find_run(app, run)).await??;
    let again = match which {
        "all" => Again::All,
        "failed" => Again::Failed,
        "case" => Again::One(find_case(&detail, case)?.1),
        _ => return Err(Failure::Unclear("which: expected all, failed or case".to_owned())),
    };
    let info = detail.record.info;
    let planned = detail.planned.into_iter().map(|planned| (planned.key, planned.verdict));
    let wanted = again.wanted(&info, planned)?;
    Ok((info.target.name, wanted))
}
