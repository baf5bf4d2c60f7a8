//! The page of one case of a run.

use axum::extract::{Extension, State};
use axum::response::Html;
use weft_suites::model::EvidenceKind;

use super::evidence;
use super::extract::Path;
use super::find::{find_case, find_run};
use crate::access::Session;
use crate::app::App;
use crate::failure::Failure;
use crate::view::{self, OperatorForms};

/// The maximum number of results of the case on the page, from this run and from other runs.
const PAST: u32 = 20;

pub(super) async fn page(
    State(app): State<App>,
    Path((run, case)): Path<(String, String)>,
    session: Option<Extension<Session>>,
) -> Result<Html<String>, Failure> {
    let run = find_run(&app, &run).await?;
    let (place, key) = find_case(&run, &case)?;
    let result = app.store.result(&run.record.info.id, &key).await?;
    let is_kept = match &result {
        Some(result) if result.evidence.path(EvidenceKind::Pcapng).is_some() => {
            evidence::evidence_path(&app, &run.record.info, result, EvidenceKind::Pcapng).await.is_some()
        }
        // The case is not finished, or it recorded no packets. So no file is missing.
        _ => true,
    };
    let past = app.store.past(&run.record.info.target.name, &key, PAST).await?;
    let is_startable = app.starter.state(&run.record.info.target.name).is_some();
    let forms = OperatorForms::of(session.as_deref()).filter(|_| is_startable);
    Ok(Html(view::case(&run, place, result.as_ref(), is_kept, &past, forms)?))
}
