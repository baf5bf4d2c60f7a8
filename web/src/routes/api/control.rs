//! Starts, stops and deletes runs through the API. [`authorize`](mod@crate::authorize) admits
//! only operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Number;
use weft_suites::model::Tier;

use super::super::control::{remove, repeated, resumed};
use super::super::extract::Path;
use super::extract::{Api, JsonBody};
use super::failure::ApiFailure;
use super::model::Accepted;
use crate::app::App;
use crate::failure::Failure;
use crate::starter::{JobError, JobRequest};

/// A request to start a run.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    /// Selects cases as on the command line: a case, the beginning of an id up to a `/`, a
    /// requirement, a tag, or `case[parameter=value]`. An empty list selects all cases.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 200)))]
    pub(super) select: Vec<String>,
    /// Which variants of the selected cases to run.
    #[serde(default)]
    pub(super) tier: Tier,
    /// Seed of all random choices. If omitted, the seed is 1.
    #[serde(default, deserialize_with = "integer")]
    #[schemars(range(max = 18_446_744_073_709_551_615_u64))]
    pub(super) seed: Option<u64>,
    /// Resumes the newest unfinished run against the target. The run keeps its plan, so `select`,
    /// `tier` and `seed` are rejected.
    #[serde(default)]
    pub(super) resume: bool,
}

/// Reads an integer as JSON Schema defines it: 7.0 is also an integer.
fn integer<'a, D: Deserializer<'a>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(from)? else { return Ok(None) };
    let integer = number.as_u64().or_else(|| {
        let float = number
            .as_f64()
            .filter(|float| float.fract() == 0.0 && (0.0..18_446_744_073_709_551_616.0).contains(float))?;
        format!("{float:.0}").parse().ok()
    });
    integer.map(Some).ok_or_else(|| Error::custom("expected an integer from 0 to 2^64-1"))
}

/// A request to rerun cases of a run.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Again {
    /// The cases to rerun.
    pub(super) which: Which,
    /// The `path` of the case, if `which` is `case`.
    #[serde(default)]
    pub(super) case: String,
}

/// Cases of a run.
#[derive(Debug, Clone, Copy, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Which {
    /// All cases.
    All,
    /// The cases that ran, but did not pass.
    Failed,
    /// The case in `case`.
    Case,
}

pub(super) async fn start(
    State(app): State<App>,
    Api(Path(target)): Api<Path<String>>,
    JsonBody(start): JsonBody<Start>,
) -> Result<(StatusCode, Json<Accepted>), ApiFailure> {
    let wanted = match start.resume {
        true if !start.select.is_empty() || start.tier != Tier::default() || start.seed.is_some() => {
            return Err(Failure::from(JobError::ResumeKeepsPlan).into());
        }
        true => resumed(&app, &target).await?,
        false => {
            let words: Vec<&str> = start.select.iter().map(String::as_str).collect();
            app.starter.request(&words, start.tier, start.seed)?
        }
    };
    accept(&app, target, wanted)
}

pub(super) async fn again(
    State(app): State<App>,
    Api(Path(run)): Api<Path<String>>,
    JsonBody(again): JsonBody<Again>,
) -> Result<(StatusCode, Json<Accepted>), ApiFailure> {
    let which = match again.which {
        Which::All => "all",
        Which::Failed => "failed",
        Which::Case => "case",
    };
    let (target, wanted) = repeated(&app, &run, which, &again.case).await?;
    accept(&app, target, wanted)
}

fn accept(app: &App, target: String, wanted: JobRequest) -> Result<(StatusCode, Json<Accepted>), ApiFailure> {
    let (job, _) = app.starter.start(&target, wanted)?;
    Ok((StatusCode::ACCEPTED, Json(Accepted { target, job })))
}

pub(super) async fn stop(
    State(app): State<App>,
    Api(Path((target, job))): Api<Path<(String, u64)>>,
) -> Result<StatusCode, ApiFailure> {
    app.starter.stop(&target, job)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn delete(
    State(app): State<App>,
    Api(Path(run)): Api<Path<String>>,
) -> Result<StatusCode, ApiFailure> {
    remove(&app, &run).await?;
    Ok(StatusCode::NO_CONTENT)
}
