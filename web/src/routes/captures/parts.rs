//! The other pages of a capture: findings, connections, one connection, operations, storage
//! commands, statistics.

use axum::extract::{Extension, State};
use axum::response::Html;
use serde::Deserialize;
use weft_core::requirement::Severity;

use super::{Surveyed, find, head, ready, survey};
use crate::access::Session;
use crate::app::App;
use crate::failure::Failure;
use crate::routes::extract::{Path, Query};
use crate::view::captures::{self, CommandOrder, Selection, ShownCommands};

#[derive(Deserialize)]
pub(in crate::routes) struct PartQuery {
    #[serde(default)]
    from: usize,
    #[serde(default)]
    severity: String,
}

pub(in crate::routes) async fn findings(
    Query(query): Query<PartQuery>,
    Surveyed { subject, survey }: Surveyed,
) -> Result<Html<String>, Failure> {
    let named = [Severity::Note, Severity::Warning, Severity::Error];
    let severity = named.into_iter().find(|severity| severity.to_string() == query.severity);
    Ok(Html(captures::findings(head("findings", &subject, &survey), &survey, severity, query.from)?))
}

pub(in crate::routes) async fn connections(
    Query(query): Query<PartQuery>,
    Surveyed { subject, survey }: Surveyed,
) -> Result<Html<String>, Failure> {
    Ok(Html(captures::connections(head("connections", &subject, &survey), &survey, query.from)?))
}

pub(in crate::routes) async fn connection(
    State(app): State<App>,
    Extension(session): Extension<Session>,
    Path((id, stream)): Path<(String, String)>,
) -> Result<Html<String>, Failure> {
    let unknown = Failure::NotFound("The capture has no such connection.");
    let Ok(stream) = stream.parse() else { return Err(unknown) };
    let subject = find(&app, &session, &id).await?;
    let survey = survey(&app, &subject).await?;
    let ladder = ready(app.captures.ladder(subject.requester.clone(), &subject.source, stream).await)?;
    let Some(ladder) = &*ladder else { return Err(unknown) };
    Ok(Html(captures::ladder(head("connection", &subject, &survey), &survey, stream, ladder)?))
}

pub(in crate::routes) async fn operations(
    Query(query): Query<PartQuery>,
    Surveyed { subject, survey }: Surveyed,
) -> Result<Html<String>, Failure> {
    Ok(Html(captures::operations(head("operations", &subject, &survey), &survey, query.from)?))
}

#[derive(Deserialize)]
pub(in crate::routes) struct CommandsQuery {
    #[serde(default)]
    from: usize,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    show: ShownCommands,
    #[serde(default)]
    sort: CommandOrder,
}

pub(in crate::routes) async fn commands(
    Query(query): Query<CommandsQuery>,
    Surveyed { subject, survey }: Surveyed,
) -> Result<Html<String>, Failure> {
    let selection = Selection { kind: &query.kind, show: query.show, sort: query.sort };
    Ok(Html(captures::commands(head("commands", &subject, &survey), &survey, &selection, query.from)?))
}

pub(in crate::routes) async fn statistics(Surveyed { subject, survey }: Surveyed) -> Result<Html<String>, Failure> {
    Ok(Html(captures::statistics(head("statistics", &subject, &survey), &survey)?))
}
