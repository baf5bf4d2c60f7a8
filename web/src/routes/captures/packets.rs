//! The page with the packets of a capture, and the page of one packet.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use weft_dissector::browse::FrameList;

use super::filter::filter_error;
use super::{Subject, Surveyed, head, ready, survey};
use crate::app::App;
use crate::failure::Failure;
use crate::routes::extract::{Path, Query};
use crate::view::captures::{self, List};
use crate::view::url;

pub(in crate::routes) const NO_PACKET: Failure = Failure::NotFound("The capture has no such packet.");

#[derive(Deserialize)]
pub(in crate::routes) struct PacketsQuery {
    #[serde(default)]
    filter: String,
    #[serde(default)]
    from: usize,
    /// The number of a packet to go to.
    number: Option<String>,
}

pub(in crate::routes) async fn list(
    State(app): State<App>,
    Query(query): Query<PacketsQuery>,
    subject: Subject,
) -> Result<Response, Failure> {
    let filter = query.filter.trim();
    if let Some(number) = query.number.as_deref().filter(|number| !number.is_empty()) {
        let number = number.trim().parse().map_err(|_| NO_PACKET)?;
        return Ok(Redirect::to(&url::packet(&url::capture(&subject.id), number, filter)).into_response());
    }
    let survey = survey(&app, &subject).await?;
    let passed = match passed(&app, &subject, filter).await? {
        Ok(passed) => passed,
        Err(wrong) => {
            let page = captures::invalid(head("packets", &subject, &survey), filter, wrong)?;
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, Html(page)).into_response());
        }
    };
    let list = List { filter, passed: passed.as_deref(), from: query.from };
    Ok(Html(captures::packets(head("packets", &subject, &survey), &survey, &list)?).into_response())
}

pub(in crate::routes) async fn one(
    State(app): State<App>,
    Path((_, number)): Path<(String, String)>,
    Query(query): Query<PacketsQuery>,
    Surveyed { subject, survey }: Surveyed,
) -> Result<Html<String>, Failure> {
    let index = &survey.index;
    let row = number.parse().ok().and_then(|number| index.rows().get(index.find(number)?)).ok_or(NO_PACKET)?;
    // If the filter is invalid, the links of this page lead to all packets. Only the list of
    // packets shows the error.
    let passed = passed(&app, &subject, query.filter.trim()).await?.unwrap_or_default();
    let list = List { filter: query.filter.trim(), passed: passed.as_deref(), from: 0 };
    let place = match &passed {
        Some(passed) => passed.find(row.number),
        None => index.find(row.number),
    };
    let details =
        ready(app.captures.detail(subject.requester.clone(), &subject.source, row.number, row.known_at).await)?;
    let detail = details.iter().find(|detail| detail.number == row.number).ok_or(NO_PACKET)?;
    Ok(Html(captures::packet(head("packet", &subject, &survey), &survey, &list, place, (row, detail))?))
}

/// Returns the numbers of the packets that match the filter, or the error in the filter as text.
/// Returns `None` if the filter is empty, because an empty filter matches all packets.
pub(in crate::routes) async fn passed(
    app: &App,
    subject: &Subject,
    filter: &str,
) -> Result<Result<Option<Arc<FrameList>>, String>, Failure> {
    if filter.is_empty() {
        return Ok(Ok(None));
    }
    if let Some(error) = filter_error(filter.to_owned()).await? {
        return Ok(Err(format!("{error}\n{}", error.pointed(filter))));
    }
    ready(app.captures.filtered(subject.requester.clone(), &subject.source, filter).await)
        .map(|passed| Ok(Some(passed)))
}
