//! Pages about the captures in the folder and the captures of cases.

pub(super) mod delete;
pub(super) mod file;
pub(super) mod filter;
pub(super) mod list;
pub(super) mod live;
pub(super) mod packets;
pub(super) mod parts;
pub(super) mod upload;

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Deserialize;
use weft_dissector::browse::Survey;
use weft_suites::model::EvidenceKind;

use super::evidence;
use super::extract::Path;
use crate::access::{Session, TokenRejection};
use crate::app::App;
use crate::captures::folder::Entry;
use crate::captures::{CacheResult, Requester, Source};
use crate::failure::Failure;
use crate::view::{self, url};

const NO_CAPTURE: Failure = Failure::NotFound("There is no such capture.");

/// A capture that a request names.
pub(super) struct Subject {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) source: Source,
    /// The client of the request.
    pub(super) requester: Requester,
    /// The entry of the folder. `None` for the capture of a case.
    pub(super) entry: Option<Entry>,
    /// Key and address of the case that recorded the capture.
    pub(super) case: Option<(String, String)>,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

impl FromRequestParts<App> for Subject {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Path(Id { id }) = Path::from_request_parts(parts, app).await?;
        let session = parts.extensions.get().ok_or(Failure::Token(TokenRejection::Missing))?;
        find(app, session, &id).await
    }
}

/// A capture that a request names, and its survey.
pub(super) struct Surveyed {
    pub(super) subject: Subject,
    pub(super) survey: Arc<Survey>,
}

impl FromRequestParts<App> for Surveyed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let subject = Subject::from_request_parts(parts, app).await?;
        let survey = survey(app, &subject).await?;
        Ok(Surveyed { subject, survey })
    }
}

/// Returns the capture with this id. The id of the capture of a case is `RUN~INDEX`, with the index
/// of the case in the plan of the run.
async fn find(app: &App, session: &Session, id: &str) -> Result<Subject, Failure> {
    if let Some((run, place)) = id.rsplit_once('~') {
        return app.watch.while_available(of_case(app, session, (id, run, place))).await?;
    }
    let folder = app.captures.folder.as_ref().ok_or(NO_CAPTURE)?;
    let entry = folder.find(id).await.map_err(Failure::File)?.ok_or(NO_CAPTURE)?;
    let (name, source) = (entry.name.clone(), entry.source.clone());
    let requester = Requester::new(session, &source);
    Ok(Subject { id: entry.id.clone(), name, source, requester, entry: Some(entry), case: None })
}

async fn of_case(app: &App, session: &Session, (id, run, place): (&str, &str, &str)) -> Result<Subject, Failure> {
    let detail = super::find::find_run(app, run).await?;
    let planned = place.parse::<usize>().ok().and_then(|place| detail.planned.get(place)).ok_or(NO_CAPTURE)?;
    let result = app.store.result(run, &planned.key).await?.ok_or(NO_CAPTURE)?;
    let path =
        evidence::evidence_path(app, &detail.record.info, &result, EvidenceKind::Pcapng).await.ok_or(NO_CAPTURE)?;
    let meta = tokio::fs::metadata(&path).await.map_err(Failure::File)?;
    let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let source = Source { path, len: meta.len(), changed };
    Ok(Subject {
        id: id.to_owned(),
        name: format!("{}.pcapng", evidence::file_name(&planned.key)),
        requester: Requester::new(session, &source),
        source,
        entry: None,
        case: Some((planned.key.to_string(), url::case(run, &planned.key))),
    })
}

async fn survey(app: &App, subject: &Subject) -> Result<Arc<Survey>, Failure> {
    ready(app.captures.survey(subject.requester.clone(), &subject.source).await)
}

/// Returns the result, or an error with the reason why there is no result yet.
pub(super) fn ready<V>(result: CacheResult<V>) -> Result<Arc<V>, Failure> {
    match result {
        CacheResult::Ready(value) => Ok(value),
        CacheResult::Failed(why) => Err(Failure::Unreadable(why)),
        CacheResult::Reading(frames) => Err(Failure::Reading(frames)),
        CacheResult::Busy => Err(Failure::Busy("Too many captures are being read. Try again in a second.")),
    }
}

fn head(page: &'static str, subject: &Subject, survey: &Survey) -> view::captures::Head {
    let Subject { id, name, source, case, .. } = subject;
    view::captures::Head::new(page, (id, name, source.len), case.clone(), survey)
}
