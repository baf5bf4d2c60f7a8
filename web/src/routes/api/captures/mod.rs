//! The resources of the API about captures.

pub(super) mod describe;
mod model;

use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use weft_dissector::browse::detail::FieldDetail;
use weft_dissector::browse::index::{Index, Row};
use weft_dissector::diagnosis::{Diagnosis, ExchangeReport, NumberedProblem};

use super::extract::{Api, count};
use super::failure::ApiFailure;
use crate::app::App;
use crate::failure::{Failure, Problem};
use crate::hex::hex;
use crate::routes::captures::filter::filter_error;
use crate::routes::captures::packets::{NO_PACKET, passed};
use crate::routes::captures::{Subject, Surveyed, delete, list, ready, upload};
use crate::routes::extract::{Path, Query};
use crate::view::captures::{CommandOrder, List, Selection, ShownCommands};
use model::{
    Answer, Answers, Capture, CaptureEntry, CaptureFinding, CaptureProblem, CaptureProblems, Captures, Counts,
    ExchangeAnswer, FilterRead, Findings, Made, Packet, PacketEntry, PacketField, PacketFinding, PacketUnit, Packets,
    StorageCommands,
};

/// The default number of entries in a response.
const DEFAULT_LINES: usize = 100;
/// The maximum number of entries in a response.
const MAX_LINES: usize = 1000;
/// Media types for a capture in the body. No HTML form can send these types.
const TYPES: [&str; 2] = ["application/octet-stream", "application/vnd.tcpdump.pcap"];

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/captures", get(captures).post(add))
        .route("/captures/{id}", get(capture).delete(remove))
        .route("/captures/{id}/packets", get(packets))
        .route("/captures/{id}/packets/{number}", get(packet))
        .route("/captures/{id}/findings", get(findings))
        .route("/captures/{id}/problems", get(problems))
        .route("/captures/{id}/answers", get(answers))
        .route("/captures/{id}/io", get(commands))
        .route("/filter", get(filter))
}

async fn captures(State(app): State<App>) -> Result<Json<Captures>, ApiFailure> {
    let entries = match &app.captures.folder {
        Some(folder) => folder.entries().await.map_err(Failure::File)?,
        None => Vec::new(),
    };
    let entry = |entry: &crate::captures::folder::Entry| {
        let since = entry.source.changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        CaptureEntry {
            id: entry.id.clone(),
            name: entry.name.clone(),
            size: entry.source.len,
            changed_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        }
    };
    Ok(Json(Captures { captures: entries.iter().take(list::MAX_LISTED).map(entry).collect() }))
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

async fn add(
    State(app): State<App>,
    Api(Query(named)): Api<Query<Named>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiFailure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !TYPES.contains(&kind) {
        let error = format!("Unsupported Content-Type: send a capture as {}.", TYPES.join(" or "));
        return Ok((StatusCode::UNSUPPORTED_MEDIA_TYPE, Json(Problem { error })).into_response());
    }
    let id = upload::body(&app, &named.name, body).await?;
    Ok((StatusCode::CREATED, Json(Made { id })).into_response())
}

async fn remove(State(app): State<App>, Api(subject): Api<Subject>) -> Result<StatusCode, ApiFailure> {
    delete::remove(&app, &subject).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn capture(Api(Surveyed { subject, survey }): Api<Surveyed>) -> Result<Json<Capture>, ApiFailure> {
    let [notes, warnings, errors] = survey.index.counts();
    Ok(Json(Capture {
        id: subject.id,
        name: subject.name,
        size: subject.source.len,
        packets: survey.index.rows().len() as u64,
        problems: survey.problems.groups().count(),
        findings: Counts { errors, warnings, notes },
        connections: survey.stats.connections().count() as u64 + survey.stats.unstored_connections(),
        note: survey.note.clone(),
        remarks: survey.remarks.clone(),
    }))
}

#[derive(Deserialize)]
struct Lines {
    #[serde(default)]
    filter: String,
    #[serde(default)]
    from: usize,
    limit: Option<usize>,
}

impl Lines {
    fn limit(&self) -> Result<usize, ApiFailure> {
        count(self.limit, DEFAULT_LINES, MAX_LINES)
    }
}

async fn packets(
    State(app): State<App>,
    Api(Query(lines)): Api<Query<Lines>>,
    Api(Surveyed { subject, survey }): Api<Surveyed>,
) -> Result<Response, ApiFailure> {
    let filter = lines.filter.trim();
    let passed = match passed(&app, &subject, filter).await? {
        Ok(passed) => passed,
        Err(error) => return Ok((StatusCode::UNPROCESSABLE_ENTITY, Json(Problem { error })).into_response()),
    };
    let index = &survey.index;
    let list = List { filter, passed: passed.as_deref(), from: lines.from };
    let range = lines.from..lines.from.saturating_add(lines.limit()?).min(list.len(index));
    let packets = range.filter_map(|at| list.row(index, at)).map(|row| packet_entry(index, row)).collect();
    Ok(Json(Packets { listed: list.len(index) as u64, packets }).into_response())
}

fn packet_entry(index: &Index, row: &Row) -> PacketEntry {
    let (from, to) = index.ends(row).map(|(from, to)| (from.to_string(), to.to_string())).unzip();
    PacketEntry {
        number: row.number.into(),
        time_ns: row.time,
        length: row.wire_len,
        from,
        to,
        stream: row.stream().map(u32::from),
        words: index.text(row),
        findings: row.findings,
    }
}

async fn packet(
    State(app): State<App>,
    Api(Path((_, number))): Api<Path<(String, String)>>,
    Api(Surveyed { subject, survey }): Api<Surveyed>,
) -> Result<Json<Packet>, ApiFailure> {
    let index = &survey.index;
    let row = number.parse().ok().and_then(|number| index.rows().get(index.find(number)?)).ok_or(NO_PACKET)?;
    let details =
        ready(app.captures.detail(subject.requester.clone(), &subject.source, row.number, row.known_at).await)?;
    let detail = details.iter().find(|detail| detail.number == row.number).ok_or(NO_PACKET)?;
    let unit = |unit: &weft_dissector::browse::detail::UnitDetail| PacketUnit {
        summary: unit.summary.clone(),
        from: unit.ends[0].clone(),
        to: unit.ends[1].clone(),
        fields: unit.fields.iter().map(field).collect(),
    };
    let finding = |finding: &weft_dissector::browse::detail::FindingDetail| PacketFinding {
        requirement: finding.requirement,
        severity: finding.severity,
        expected: finding.expected.clone(),
        found: finding.found.clone(),
    };
    Ok(Json(Packet {
        number: detail.number.into(),
        time_ns: detail.time,
        length: detail.wire_len,
        octets: hex(&detail.octets),
        units: detail.units.iter().map(unit).collect(),
        findings: detail.findings.iter().map(finding).collect(),
    }))
}

fn field(field: &FieldDetail) -> PacketField {
    PacketField {
        depth: field.depth,
        name: field.name.to_owned(),
        label: field.label.to_owned(),
        value: field.value.clone(),
        octets: field.location.in_frame.iter().map(|range| [range.start, range.end]).collect(),
    }
}

async fn findings(
    Api(Query(lines)): Api<Query<Lines>>,
    Api(Surveyed { survey, .. }): Api<Surveyed>,
) -> Result<Json<Findings>, ApiFailure> {
    let some = survey.index.findings().iter().enumerate().skip(lines.from).take(lines.limit()?);
    let findings = some.map(|(place, finding)| CaptureFinding {
        packet: finding.frame.into(),
        stream: finding.stream.map(u32::from),
        problem: survey.problems.entry_of(place).and_then(|entry| entry.number),
        finding: PacketFinding {
            requirement: finding.requirement,
            severity: finding.severity,
            expected: finding.expected.clone(),
            found: finding.found.clone(),
        },
    });
    let total: u64 = survey.index.counts().iter().sum();
    let left_out = total.saturating_sub(survey.index.findings().len() as u64);
    Ok(Json(Findings { total, left_out, findings: findings.collect() }))
}

async fn problems(
    Api(Query(lines)): Api<Query<Lines>>,
    Api(Surveyed { survey, .. }): Api<Surveyed>,
) -> Result<Json<CaptureProblems>, ApiFailure> {
    let mut all: Vec<NumberedProblem<'_>> = survey.problems.groups().problems().collect();
    all.sort_unstable_by_key(|problem| problem.number);
    let total = all.len() as u64;
    let some = all.into_iter().skip(lines.from).take(lines.limit()?);
    let problems = some.map(|NumberedProblem { number, stream, problem }| CaptureProblem {
        problem: number,
        stream: stream.map(u32::from),
        direction: problem.direction,
        severity: problem.severity,
        requirement: problem.requirement,
        requirements: problem.requirements.clone(),
        packets: problem.frames.iter().map(|frame| u64::from(*frame)).collect(),
        count: problem.count,
        expected: problem.expected.clone(),
        found: problem.found.clone(),
    });
    Ok(Json(CaptureProblems { total, problems: problems.collect() }))
}

#[derive(Deserialize)]
struct CommandLines {
    #[serde(default)]
    from: usize,
    limit: Option<usize>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    show: ShownCommands,
    #[serde(default)]
    sort: CommandOrder,
}

async fn commands(
    Api(Query(lines)): Api<Query<CommandLines>>,
    Api(Surveyed { survey, .. }): Api<Surveyed>,
) -> Result<Json<StorageCommands>, ApiFailure> {
    let limit = count(lines.limit, DEFAULT_LINES, MAX_LINES)?;
    let all = &survey.commands;
    let selected = Selection { kind: &lines.kind, show: lines.show, sort: lines.sort }.of(all);
    Ok(Json(StorageCommands {
        total: selected.len() as u64,
        left_out: all.omitted(),
        commands: selected.into_iter().skip(lines.from).take(limit).cloned().collect(),
        statistics: all.kinds().collect(),
        outstanding: all.outstanding().clone(),
        summary: all.totals(),
    }))
}

async fn answers(
    Api(Query(lines)): Api<Query<Lines>>,
    Api(Surveyed { survey, .. }): Api<Surveyed>,
) -> Result<Json<Answers>, ApiFailure> {
    let diagnoses = &survey.diagnoses;
    let answer = |diagnosis: &Diagnosis| Answer {
        stream: diagnosis.stream.into(),
        headline: diagnosis.headline.clone(),
        text: format!("{} {}", diagnosis.sentence(), diagnosis.details()).trim_end().to_owned(),
        is_failure: diagnosis.is_failure(),
        is_healthy: diagnosis.is_healthy(),
        facts: diagnosis.clone(),
    };
    let exchange =
        |exchange: &ExchangeReport| ExchangeAnswer { exchange: exchange.exchange, text: exchange.to_string() };
    let exchanges: &[ExchangeReport] = if lines.from == 0 { diagnoses.exchanges() } else { &[] };
    Ok(Json(Answers {
        total: diagnoses.connections().count() as u64,
        unexplained: diagnoses.unstored(),
        answers: diagnoses.connections().skip(lines.from).take(lines.limit()?).map(answer).collect(),
        exchanges: exchanges.iter().map(exchange).collect(),
    }))
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

async fn filter(Api(Query(Text { text })): Api<Query<Text>>) -> Result<Json<FilterRead>, ApiFailure> {
    let error = filter_error(text).await?;
    let column = error.as_ref().map(|error| error.column);
    Ok(Json(FilterRead { column, error: error.map(|error| error.to_string()) }))
}
