//! Forms that start, stop and delete runs. [`authorize`](mod@crate::authorize) admits only
//! operators.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use tokio::sync::oneshot;
use weft_suites::model::Tier;

use super::extract::{Form, Path};
use super::find::{find_case, find_record, find_run};
use crate::app::App;
use crate::failure::Failure;
use crate::retention;
use crate::starter::{JobRequest, RerunSelection};
use crate::view::url;

/// How long a response waits for the start of a run. If the run starts in this time, the response
/// redirects to the page of the run.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 3 });

#[derive(Deserialize)]
pub(super) struct StartForm {
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
    Form(form): Form<StartForm>,
) -> Result<Response, Failure> {
    let unclear = |what: &str| Failure::Invalid(what.to_owned());
    let tier = match form.tier.as_str() {
        "" => Tier::default(),
        word => word.parse().map_err(Failure::Invalid)?,
    };
    let seed = match form.seed.trim() {
        "" => None,
        number => Some(number.parse().map_err(|_| unclear("A seed is a number from 0 to 18446744073709551615."))?),
    };
    let wanted = match form.resume.is_empty() {
        true => {
            let words: Vec<&str> = form.select.split_whitespace().collect();
            app.starter.request(&words, tier, seed)?
        }
        false => resumed(&app, &target).await?,
    };
    begin(&app, &target, wanted).await
}

/// Makes a request to resume the newest unfinished run against a target. Returns an error if there
/// is no such run.
pub(super) async fn resumed(app: &App, target: &str) -> Result<JobRequest, Failure> {
    use crate::starter::JobError::{NothingToResume, UnknownTarget};
    let (_, state) = app.starter.state(target).ok_or(UnknownTarget)?;
    let run = app.watch.while_available(app.store.unfinished(target)).await??.ok_or(NothingToResume)?;
    // The run is already in progress.
    if state.running.is_some_and(|job| job.run.as_ref() == Some(&run)) {
        return Err(NothingToResume.into());
    }
    Ok(JobRequest { resume: true, about: format!("the rest of run {run}"), ..JobRequest::default() })
}

async fn begin(app: &App, target: &str, wanted: JobRequest) -> Result<Response, Failure> {
    let (_, begins) = app.starter.start(target, wanted)?;
    Ok(Redirect::to(&page_address(target, begins).await).into_response())
}

/// Returns the address of the run's page if the run starts soon, otherwise the address of the
/// target's page.
async fn page_address(target: &str, begins: oneshot::Receiver<String>) -> String {
    match tokio::time::timeout(PATIENCE, begins).await {
        Ok(Ok(run)) => url::run(&run),
        _ => url::target(target),
    }
}

#[derive(Deserialize)]
pub(super) struct StopForm {
    job: u64,
}

pub(super) async fn stop(
    State(app): State<App>,
    Path(target): Path<String>,
    Form(form): Form<StopForm>,
) -> Result<Response, Failure> {
    let running = app.starter.state(&target).and_then(|(_, state)| state.running);
    app.starter.stop(&target, form.job)?;
    let run = running.filter(|job| job.id == form.job).and_then(|job| job.run);
    Ok(Redirect::to(&run.map_or_else(|| url::target(&target), |run| url::run(&run))).into_response())
}

#[derive(Deserialize)]
pub(super) struct RerunForm {
    which: String,
    #[serde(default)]
    case: String,
}

pub(super) async fn again(
    State(app): State<App>,
    Path(run): Path<String>,
    Form(form): Form<RerunForm>,
) -> Result<Response, Failure> {
    let (target, wanted) = repeated(&app, &run, &form.which, &form.case).await?;
    begin(&app, &target, wanted).await
}

/// Returns the target of an earlier run, and a request to rerun cases of that run.
pub(super) async fn repeated(app: &App, run: &str, which: &str, case: &str) -> Result<(String, JobRequest), Failure> {
    let detail = app.watch.while_available(find_run(app, run)).await??;
    let again = match which {
        "all" => RerunSelection::All,
        "failed" => RerunSelection::Failed,
        "case" => RerunSelection::One(find_case(&detail, case)?.1),
        _ => return Err(Failure::Invalid("which: expected \"all\", \"failed\" or \"case\"".to_owned())),
    };
    let info = detail.record.info;
    let planned = detail.planned.into_iter().map(|planned| (planned.key, planned.verdict));
    let wanted = again.request(&info, planned)?;
    Ok((info.target.name, wanted))
}

pub(super) async fn delete(State(app): State<App>, Path(run): Path<String>) -> Result<Redirect, Failure> {
    Ok(Redirect::to(&url::target(&remove(&app, &run).await?)))
}

/// Deletes a run. Returns the name of its target.
pub(super) async fn remove(app: &App, run: &str) -> Result<String, Failure> {
    let target = app.watch.while_available(find_record(app, run)).await??.info.target.name;
    let (store, folder, run) = (app.store.clone(), app.folder.clone(), run.to_owned());
    // A task of its own: a client that disconnects does not interrupt the deletion.
    let work = async move { retention::delete(&store, &folder, &run, &target).await.map(|()| target) };
    let deletion = tokio::spawn(work);
    deletion.await.map_err(|error| Failure::File(std::io::Error::other(error)))?
}
