//! The ticket as Markdown, for an issue tracker.

use weft_core::text::visible;
use weft_dissector::browse::detail::Detail;
use weft_dissector::output::hexdump::hexdump;

use super::{CaptureTicket, ConnectionEvidence, contents, marked, shown};
use crate::model::MarkKind;
use crate::report::markdown::escaped;
use crate::report::ticket::requirement_item;

/// Width of the sequence diagram in columns.
const COLUMNS: usize = 100;
/// Number of blanks before each line of a hex dump.
const INDENT: usize = 2;

/// Returns the text.
pub(super) fn markdown(ticket: &CaptureTicket) -> String {
    let mut text = format!("# {}\n\n", escaped(ticket.title()));
    text.push_str(&format!(
        "Capture {}, explained by weft {}. The packets are in `{}`.\n",
        escaped(&ticket.capture),
        env!("CARGO_PKG_VERSION"),
        ticket.packets
    ));
    for connection in &ticket.connections {
        text.push_str(&section(connection));
    }
    if let Some(omission) = ticket.omission() {
        text.push_str(&format!("\n{omission}\n"));
    }
    visible(&text).into_owned()
}

fn section(connection: &ConnectionEvidence) -> String {
    let diagnosis = &connection.diagnosis;
    let mut text = format!("\n## Connection {}: {}\n\n", diagnosis.stream, escaped(&diagnosis.headline));
    text.push_str("| | |\n| --- | --- |\n");
    for (name, value) in connection.facts() {
        text.push_str(&format!("| {name} | {} |\n", escaped(&value).replace('|', "\\|")));
    }
    text.push_str(&format!("\n{}\n", escaped(&diagnosis.details())));
    if let Some(ladder) = &connection.ladder {
        text.push_str(&format!("\n```text\n{}```\n", ladder.text(COLUMNS)));
    }
    if !connection.frames.is_empty() {
        text.push_str("\n### Bytes\n");
    }
    connection.frames.iter().for_each(|detail| text.push_str(&bytes(detail)));
    let requirements = connection.requirements();
    if !requirements.is_empty() {
        text.push_str("\n### Violated requirements\n\n");
    }
    requirements.into_iter().for_each(|row| text.push_str(&requirement_item(row)));
    text
}

/// The bytes of a frame, and a line for each range of wrong bytes.
fn bytes(detail: &Detail) -> String {
    let octets = marked(detail);
    let end = shown(&octets).min(detail.octets.len());
    let mut text = format!("\nFrame {}, {}:\n\n```text\n", detail.number, escaped(&contents(detail)));
    text.push_str(&hexdump(&detail.octets[..end], 0, INDENT));
    if detail.captured > end {
        text.push_str(&format!("{:INDENT$}and {} more bytes\n", "", detail.captured - end));
    }
    text.push_str("```\n");
    let wrong: Vec<_> = octets.marks.iter().filter(|mark| mark.kind == MarkKind::Wrong).collect();
    if !wrong.is_empty() {
        text.push('\n');
    }
    for mark in wrong {
        let verb = if mark.is_long() { "are" } else { "is" };
        text.push_str(&format!("- {} {verb} wrong: {}\n", mark.range_text(), escaped(&mark.label)));
    }
    text
}
