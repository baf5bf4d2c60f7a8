//! The connections of a capture, and one of them as a ladder.

use askama::Template;
use weft_dissector::StreamId;
use weft_dissector::browse::Survey;
use weft_dissector::output::ladder::{Ladder, Tone};
use weft_dissector::stats::ConnectionStats;
use weft_suites::clock;

use super::common::{Count, Head, Links, counts, part};
use crate::view::url;

/// Links below a ladder.
const MOST_MARKED: usize = 100;

#[derive(Template)]
#[template(path = "capture_connections.html")]
struct Page<'a> {
    head: Head,
    rows: Vec<Line<'a>>,
    pages: Links,
    /// Number of connections that the survey does not keep.
    further: u64,
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
    ladder: String,
    packets: String,
}

/// The page.
pub(crate) fn connections(head: Head, survey: &Survey, from: usize) -> Result<String, askama::Error> {
    let base = head.base.clone();
    let total = survey.stats.connections().count();
    let (range, pages) = part(from, total, |from| url::part(&base, "connections", from));
    let rows = survey.stats.connections().skip(range.start).take(range.len()).map(|one| line(&base, one)).collect();
    let (further, others) = (survey.stats.further(), survey.stats.others());
    Page { head, rows, pages, further, others, port_mapper: survey.stats.port_mapper() }.render()
}

fn line<'a>(base: &str, connection: &'a ConnectionStats) -> Line<'a> {
    let [one, other] = &connection.directions;
    Line {
        stream: connection.stream,
        ends: &connection.ends,
        ulp: connection.ulp.unwrap_or_default(),
        fpdus: [one.fpdus, other.fpdus],
        payload: [one.payload_octets, other.payload_octets],
        took: clock::duration(connection.duration_ns / 1000),
        counts: counts(connection.findings),
        ladder: url::connection(base, connection.stream),
        packets: url::packets(base, &of_stream(connection.stream), 0),
    }
}

/// The filter of a connection's packets.
fn of_stream(stream: StreamId) -> String {
    format!("tcp.stream == {stream}")
}

#[derive(Template)]
#[template(path = "capture_ladder.html")]
struct LadderPage {
    head: Head,
    stream: StreamId,
    packets: String,
    svg: String,
    /// Unusual rows: address of the packet, its number, the text of the row.
    marked: Vec<(String, u64, String)>,
    /// The output of `weft stats`.
    numbers: String,
}

/// The page of one connection.
pub(crate) fn ladder(head: Head, survey: &Survey, stream: StreamId, ladder: &Ladder) -> Result<String, askama::Error> {
    let base = head.base.clone();
    let unusual = ladder.rows.iter().filter(|row| matches!(row.tone, Tone::Wrong | Tone::Notable));
    let marked = unusual.filter_map(|row| {
        let frame = row.frame?;
        Some((url::packet(&base, frame, ""), frame, row.label.clone()))
    });
    let numbers = survey.stats.connections().find(|connection| connection.stream == stream);
    let page = LadderPage {
        stream,
        packets: url::packets(&base, &of_stream(stream), 0),
        svg: ladder.svg(),
        marked: marked.take(MOST_MARKED).collect(),
        numbers: numbers.map(ToString::to_string).unwrap_or_default(),
        head,
    };
    page.render()
}
