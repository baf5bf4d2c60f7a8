//! The page of one packet: findings, fields, bytes.

use std::collections::BTreeSet;

use askama::Template;
use weft_core::{Requirement, RequirementId};
use weft_dissector::browse::detail::{Detail, FieldDetail, FindingDetail, FrameLocation};
use weft_dissector::browse::index::Row;
use weft_dissector::browse::{ProblemEntry, Survey};
use weft_dissector::output::text::counted;
use weft_dissector::{FrameNumber, StreamId};

use super::common::{Head, LINES, class, ranges};
use super::packets::List;
use crate::view::{time, url};

/// The maximum number of bytes on the page.
const SHOWN: usize = 8192;
/// The number of bytes in a row.
const ROW: usize = 16;
/// The maximum number of other packets that a field links to.
const ELSEWHERE: usize = 3;

#[derive(Template)]
#[template(path = "packet.html")]
struct Page<'a> {
    head: Head,
    detail: &'a Detail,
    time: String,
    ends: Option<(String, String)>,
    words: String,
    stream: Option<(StreamId, String)>,
    previous: Option<String>,
    next: Option<String>,
    /// The address of the part of the list that contains the packet.
    list: String,
    /// The numbers of violated requirements and of problems, as text.
    counts: String,
    /// The findings. Those at the root of a problem come first.
    findings: Vec<Finding<'a>>,
    units: Vec<Unit<'a>>,
    rows: Vec<HexRow>,
    more: usize,
}

struct Finding<'a> {
    class: &'static str,
    severity: String,
    row: &'static Requirement,
    expected: &'a str,
    found: &'a str,
    /// The byte ranges of the finding, for the page's script.
    at: String,
    first: usize,
}

struct Unit<'a> {
    summary: &'a str,
    fields: Vec<Field>,
}

struct Field {
    depth: usize,
    is_header: bool,
    text: String,
    about: String,
    at: String,
    first: usize,
    elsewhere: Vec<(FrameNumber, String)>,
}

struct HexRow {
    offset: String,
    cells: Vec<Cell>,
    text: String,
}

struct Cell {
    at: usize,
    hex: String,
}

/// Renders the page of a packet. `place` is the index of the packet in `list`, or `None` if the
/// packet is not in `list`.
pub(crate) fn packet(
    head: Head,
    survey: &Survey,
    list: &List<'_>,
    place: Option<usize>,
    (row, detail): (&Row, &Detail),
) -> Result<String, askama::Error> {
    let index = &survey.index;
    let base = head.base.clone();
    let (counts, findings) = findings(survey, detail);
    let neighbour = |place: Option<usize>| Some(url::packet(&base, list.row(index, place?)?.number, list.filter));
    let page = Page {
        time: time::utc(detail.time / 1_000_000),
        ends: index.ends(row).map(|(from, to)| (from.to_string(), to.to_string())),
        words: index.text(row),
        stream: row.stream().map(|stream| (stream, url::connection(&base, stream))),
        previous: neighbour(place.and_then(|place| place.checked_sub(1))),
        next: neighbour(place.and_then(|place| place.checked_add(1))),
        list: url::packets(&base, list.filter, place.unwrap_or(0) / LINES * LINES),
        counts,
        findings,
        units: detail
            .units
            .iter()
            .map(|unit| Unit {
                summary: &unit.summary,
                fields: unit.fields.iter().map(|one| field(one, &base, list.filter)).collect(),
            })
            .collect(),
        rows: hex(&detail.octets[..detail.octets.len().min(SHOWN)]),
        more: detail.captured.saturating_sub(SHOWN),
        detail,
        head,
    };
    page.render()
}

/// Returns the findings of a packet, and the numbers of violated requirements and of problems, for
/// example ": 10 rules in 1 problem". The text is empty for a single finding.
fn findings<'a>(survey: &Survey, detail: &'a Detail) -> (String, Vec<Finding<'a>>) {
    let of_packet = survey.index.findings().iter().enumerate().filter(|(_, finding)| finding.frame == detail.number);
    let entries: Vec<&ProblemEntry> = of_packet.filter_map(|(place, _)| survey.problems.entry_of(place)).collect();
    let problems: BTreeSet<u64> = entries.iter().filter_map(|entry| entry.number).collect();
    let rules: BTreeSet<RequirementId> = detail.findings.iter().map(|finding| finding.requirement).collect();
    let mut counts = String::new();
    if detail.findings.len() > 1 {
        counts = format!(": {}", counted(rules.len() as u64, "rule"));
        if !problems.is_empty() {
            counts = format!("{counts} in {}", counted(problems.len() as u64, "problem"));
        }
    }
    let is_root = |id: RequirementId| entries.iter().any(|entry| entry.requirement == id);
    let mut sorted: Vec<&FindingDetail> = detail.findings.iter().collect();
    sorted.sort_by_key(|finding| !is_root(finding.requirement));
    (counts, sorted.into_iter().map(finding).collect())
}

fn finding(detail: &FindingDetail) -> Finding<'_> {
    Finding {
        class: class(detail.severity),
        severity: detail.severity.to_string(),
        row: detail.requirement.row(),
        expected: &detail.expected,
        found: &detail.found,
        at: ranges(&detail.location),
        first: first(&detail.location),
    }
}

fn field(detail: &FieldDetail, base: &str, filter: &str) -> Field {
    let separator = if detail.value.is_empty() { "" } else { ": " };
    let about = [detail.section, detail.name].into_iter().filter(|word| !word.is_empty());
    Field {
        depth: detail.depth.min(3),
        is_header: detail.is_header,
        text: format!("{}{separator}{}", detail.label, detail.value),
        about: about.collect::<Vec<_>>().join(", "),
        at: ranges(&detail.location),
        first: first(&detail.location),
        elsewhere: if detail.depth == 0 {
            let others = detail.location.other_frames.iter().take(ELSEWHERE);
            others.map(|number| (*number, url::packet(base, *number, filter))).collect()
        } else {
            Vec::new()
        },
    }
}

fn first(location: &FrameLocation) -> usize {
    location.in_frame.iter().find(|range| !range.is_empty()).map_or(0, |range| range.start)
}

fn hex(octets: &[u8]) -> Vec<HexRow> {
    let row = |(number, chunk): (usize, &[u8])| {
        let cell = |(at, octet): (usize, &u8)| Cell { at: number * ROW + at, hex: format!("{octet:02x}") };
        let shown = |octet: &u8| if (0x20..0x7f).contains(octet) { char::from(*octet) } else { '·' };
        HexRow {
            offset: format!("{:04x}", number * ROW),
            cells: chunk.iter().enumerate().map(cell).collect(),
            text: chunk.iter().map(shown).collect(),
        }
    };
    octets.chunks(ROW).enumerate().map(row).collect()
}
