//! The ticket as one HTML page. It has the style of the report of a run, and no scripts.

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use weft_core::Requirement;
use weft_core::text::visible;
use weft_dissector::browse::detail::{Detail, FindingDetail};
use weft_dissector::output::ladder::Ladder;

use super::{CaptureTicket, ConnectionEvidence, contents, marked, shown};
use crate::report::ReportError;
use crate::report::hex::{HexRow, rows};

/// The characters of a file name that a link escapes.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Template)]
#[template(path = "capture_ticket.html")]
struct Page<'a> {
    ticket: &'a CaptureTicket,
    /// Address of the packets.
    href: String,
    connections: Vec<ConnectionView<'a>>,
    version: &'static str,
}

struct ConnectionView<'a> {
    headline: &'a str,
    facts: Vec<(&'static str, String)>,
    text: String,
    svg: String,
    frames: Vec<FrameView<'a>>,
    requirements: Vec<&'static Requirement>,
}

struct FrameView<'a> {
    heading: String,
    len: usize,
    rows: Vec<HexRow>,
    /// Number of bytes that are not shown.
    more: usize,
    findings: Vec<&'a FindingDetail>,
}

/// Returns the page.
pub(super) fn html(ticket: &CaptureTicket) -> Result<String, ReportError> {
    let page = Page {
        ticket,
        href: href(ticket),
        connections: ticket.connections.iter().map(view).collect(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let failed = |error: askama::Error| ReportError::Make { format: "HTML", error: error.to_string() };
    let page = page.render().map_err(failed)?;
    Ok(visible(&page).into_owned())
}

/// The address of the packets: their bytes, or the name of the file.
fn href(ticket: &CaptureTicket) -> String {
    match &ticket.included {
        Some(octets) => format!("data:application/octet-stream;base64,{}", STANDARD.encode(octets)),
        None => utf8_percent_encode(&ticket.packets, ESCAPED).to_string(),
    }
}

fn view(connection: &ConnectionEvidence) -> ConnectionView<'_> {
    ConnectionView {
        headline: &connection.diagnosis.headline,
        facts: connection.facts(),
        text: connection.diagnosis.details(),
        svg: connection.ladder.as_ref().map(Ladder::svg).unwrap_or_default(),
        frames: connection.frames.iter().map(frame_view).collect(),
        requirements: connection.requirements(),
    }
}

fn frame_view(detail: &Detail) -> FrameView<'_> {
    let octets = marked(detail);
    let shown = shown(&octets).min(detail.octets.len());
    FrameView {
        heading: format!("frame {}: {}", detail.number, contents(detail)),
        len: detail.captured,
        rows: rows(&octets, shown),
        more: detail.captured.saturating_sub(shown),
        findings: detail.findings.iter().collect(),
    }
}
