//! The field tree of a frame, with branches that open and close.

use std::collections::HashSet;

use weft_core::requirement::Severity;
use weft_dissector::TransportKind;
use weft_dissector::browse::OwnedRow;
use weft_dissector::browse::detail::{Detail, FrameLocation};

use crate::outline::{Outline, TreeLine};
use crate::time::utc;

/// One line of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) depth: usize,
    /// Identifies the field. The key of a field is the same in all frames.
    pub(crate) key: String,
    pub(crate) text: String,
    /// The section of the specification, and the name of the field in filters. Empty if there is
    /// neither.
    pub(crate) about: String,
    pub(crate) severity: Option<Severity>,
    pub(crate) is_branch: bool,
    pub(crate) place: FrameLocation,
}

impl TreeLine for Line {
    fn depth(&self) -> usize {
        self.depth
    }

    fn key(&self) -> &str {
        &self.key
    }

    fn is_branch(&self) -> bool {
        self.is_branch
    }
}

/// The tree panel.
pub(crate) type Fields = Outline<Line>;

/// The key of the branch about the frame itself, if messages end in the frame. This branch is
/// closed at first.
const FRAME: &str = "frame";
/// The key of the branch about the frame itself, if no message ends in the frame. This branch is
/// open at first.
const BARE_FRAME: &str = "bare frame";

impl Fields {
    pub(crate) fn new() -> Self {
        Outline { closed: HashSet::from([FRAME.to_owned()]), ..Outline::default() }
    }

    /// Shows another frame, or more details of the same frame. If the frame has the field that the
    /// user chose last, that field is selected.
    pub(crate) fn show(&mut self, row: &OwnedRow, detail: Option<&Detail>) {
        self.lines = lines(row, detail);
        self.arrange();
        let chosen = self.chosen.as_deref();
        let same = self.visible.iter().position(|at| Some(self.lines[*at].key.as_str()) == chosen);
        self.list.selected = same.unwrap_or(usize::from(row.units > 0 && self.visible.len() > 1));
    }

    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.visible.clear();
    }

    /// Stores the key of the selected line, for the next frame.
    pub(crate) fn choose(&mut self) {
        self.chosen = self.selected().map(|line| line.key.clone());
    }

    /// Selects the smallest visible field that contains the byte at `offset`.
    pub(crate) fn select_octet(&mut self, offset: usize) {
        let fields = self.shown().enumerate().filter(|(_, line)| line.place.contains(offset));
        // If two fields have the same bytes, select the deeper field, which has the higher index.
        let best = fields.min_by_key(|(at, line)| (line.place.len(), std::cmp::Reverse(*at))).map(|(at, _)| at);
        if let Some(best) = best {
            self.list.selected = best;
            self.choose();
        }
    }
}

fn lines(row: &OwnedRow, detail: Option<&Detail>) -> Vec<Line> {
    let mut lines = Vec::new();
    about_frame(row, &mut lines);
    let Some(detail) = detail else { return lines };
    for finding in &detail.findings {
        let requirement = finding.requirement.row();
        let line = |depth, key: &str, text: String| Line {
            depth,
            key: format!("finding{key}"),
            text,
            about: format!("{} section {}", requirement.catalogue, requirement.section),
            severity: Some(finding.severity),
            is_branch: depth == 0,
            place: finding.location.clone(),
        };
        lines.push(line(0, "", format!("{}: {}", finding.severity, requirement.id)));
        lines.push(line(1, "/summary", format!("{} ({})", requirement.summary, requirement.level)));
        if let Some(sentence) = requirement.sentence {
            lines.push(line(1, "/sentence", format!("\"{sentence}\"")));
        }
        lines.push(line(1, "/expected", format!("expected: {}", finding.expected)));
        lines.push(line(1, "/found", format!("found: {}", finding.found)));
    }
    for unit in &detail.units {
        lines.push(Line {
            key: "unit".to_owned(),
            text: unit.summary.clone(),
            about: unit.ends.join(" → "),
            is_branch: !unit.fields.is_empty(),
            ..Line::default()
        });
        for field in &unit.fields {
            let separator = if field.value.is_empty() { "" } else { ": " };
            let about = [field.section, field.name].map(str::to_owned).into_iter().filter(|word| !word.is_empty());
            lines.push(Line {
                depth: field.depth + 1,
                key: format!("unit/{}", field.name),
                text: format!("{}{separator}{}", field.label, field.value),
                about: about.collect::<Vec<_>>().join("  "),
                severity: None,
                is_branch: field.is_header,
                place: field.location.clone(),
            });
        }
    }
    if detail.omitted > 0 {
        let text = format!("{} more units end in this frame; `weft explain` shows all of them", detail.omitted);
        lines.push(Line { key: "left out".to_owned(), text, ..Line::default() });
    }
    lines
}

fn about_frame(row: &OwnedRow, lines: &mut Vec<Line>) {
    let branch = if row.units > 0 { FRAME } else { BARE_FRAME };
    let mut add = |depth: usize, name: &str, text: String| {
        lines.push(Line {
            depth,
            key: if depth == 0 { branch.to_owned() } else { format!("{branch}/{name}") },
            text,
            is_branch: depth == 0,
            ..Line::default()
        });
    };
    add(0, "", format!("Frame {}: {} bytes, {}", row.number, row.wire_len, row.transport_summary()));
    add(1, "captured", format!("captured: {} of {} bytes", row.captured, row.wire_len));
    add(1, "time", format!("time: {} UTC", utc(row.time)));
    if let Some((src, dst)) = row.ends {
        add(1, "source", format!("from: {src}"));
        add(1, "destination", format!("to: {dst}"));
    }
    if let Some(TransportKind::Tcp { seq, .. }) = row.transport {
        add(1, "flags", format!("TCP flags: {}", row.tcp_flags()));
        add(1, "seq", format!("sequence number: {seq}"));
        add(1, "len", format!("payload: {} bytes", row.payload_len));
    }
}

#[cfg(test)]
mod tests {
    use weft_dissector::FrameNumber;
    use weft_dissector::link_type::ETHERNET;
    use weft_dissector::source::Frame;

    use super::*;

    #[test]
    fn reports_how_many_units_are_not_listed() {
        let frame = Frame {
            number: FrameNumber::FIRST,
            time: 0,
            interface: 0,
            link_type: ETHERNET,
            octets: &[0; 60],
            wire_len: 60,
        };
        let row = OwnedRow::of(&frame);
        let last = |left_out| {
            lines(&row, Some(&Detail { omitted: left_out, ..Detail::default() })).pop().map(|line| line.text)
        };
        assert_eq!(last(3).unwrap(), "3 more units end in this frame; `weft explain` shows all of them");
        assert!(!last(0).unwrap().contains("more units"));
    }
}
