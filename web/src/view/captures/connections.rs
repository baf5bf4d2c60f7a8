//! The page with the connections of a capture, and the page of one connection with its ladder
//! diagram.

use askama::Template;
use weft_dissector::browse::Survey;
use weft_dissector::diagnosis::Diagnosis;
use weft_dissector::output::ladder::{Ladder, Tone};
use weft_dissector::stats::ConnectionStats;
use weft_dissector::{FrameNumber, StreamId};
use weft_suites::clock;

use super::answers::{Answer, class};
use super::common::{Count, Head, Links, counts, part};
use crate::view::url;

/// The maximum number of links below a ladder diagram.
const MAX_MARKED: usize = 100;

#[derive(Template)]
#[template(path = "capture_connections.html")]
struct Page<'a> {
    head: Head,
    rows: Vec<Line<'a>>,
    pages: Links,
    /// Number of connections that the survey counts but does not list.
    further: u64,
    /// Number of connections without an answer, because the capture has too many connections.
    unexplained: u64,
    /// Number of TCP connections without iWARP or SDP.
    others: u64,
    port_mapper: u64,
}

struct Line<'a> {
    stream: StreamId,
    ends: &'a [String; 2],
    ulp: &'static str,
    fpdus: [u64; 2],
    payload: [u64; 2],
    took: String,
    counts: Vec<Count>,
    /// What happened, in one clause.
    answer: &'a str,
    class: &'static str,
    ladder: String,
    packets: String,
}

/// Renders the page with the connections. `from` is the index of the first connection to show.
pub(crate) fn connections(head: Head, survey: &Survey, from: usize) -> Result<String, askama::Error> {
    let base = head.base.clone();
    let total = survey.stats.connections().count();
    let (range, pages) = part(from, total, |from| url::part(&base, "connections", from));
    let connections = survey.stats.connections().skip(range.start).take(range.len());
    let rows = connections.map(|one| line(&base, one, survey.diagnoses.of(one.stream))).collect();
    let (further, others) = (survey.stats.unstored_connections(), survey.stats.others());
    let (unexplained, port_mapper) = (survey.diagnoses.unstored(), survey.stats.port_mapper());
    Page { head, rows, pages, further, unexplained, others, port_mapper }.render()
}

fn line<'a>(base: &str, connection: &'a ConnectionStats, diagnosis: Option<&'a Diagnosis>) -> Line<'a> {
    let [one, other] = &connection.directions;
    Line {
        stream: connection.stream,
        ends: &connection.ends,
        ulp: connection.ulp.unwrap_or_default(),
        fpdus: [one.fpdus, other.fpdus],
        payload: [one.payload_octets, other.payload_octets],
        took: clock::duration(connection.duration_ns / 1000),
        counts: counts(connection.findings),
        answer: diagnosis.map_or("not explained", |diagnosis| diagnosis.headline.as_str()),
        class: diagnosis.map_or("", class),
        ladder: url::connection(base, connection.stream),
        packets: url::packets(base, &of_stream(connection.stream), 0),
    }
}

/// The display filter that selects the packets of a connection.
fn of_stream(stream: StreamId) -> String {
    format!("tcp.stream == {stream}")
}

#[derive(Template)]
#[template(path = "capture_ladder.html")]
struct LadderPage<'a> {
    head: Head,
    stream: StreamId,
    /// What happened on the connection. `None` if the survey has no diagnosis of it.
    answer: Option<Answer<'a>>,
    /// Whether there is no diagnosis because the capture has too many connections.
    is_unexplained: bool,
    packets: String,
    svg: String,
    /// Unusual rows of the diagram: address of the packet, number of the packet, text of the row.
    marked: Vec<(String, FrameNumber, String)>,
    /// The output of `weft stats` for this connection.
    numbers: String,
}

/// Renders the page of one connection.
pub(crate) fn ladder(head: Head, survey: &Survey, stream: StreamId, ladder: &Ladder) -> Result<String, askama::Error> {
    let base = head.base.clone();
    let unusual = ladder.rows.iter().filter(|row| matches!(row.tone, Tone::Wrong | Tone::Notable));
    let marked = unusual.filter_map(|row| {
        let frame = row.frame?;
        Some((url::packet(&base, frame, ""), frame, row.label.clone()))
    });
    let numbers = survey.stats.connections().find(|connection| connection.stream == stream);
    let diagnosis = survey.diagnoses.of(stream);
    let page = LadderPage {
        stream,
        answer: diagnosis.map(|diagnosis| Answer::complete(&base, diagnosis)),
        is_unexplained: diagnosis.is_none() && numbers.is_some() && survey.diagnoses.unstored() > 0,
        packets: url::packets(&base, &of_stream(stream), 0),
        svg: ladder.svg(),
        marked: marked.take(MAX_MARKED).collect(),
        numbers: numbers.map(ToString::to_string).unwrap_or_default(),
        head,
    };
    page.render()
}
