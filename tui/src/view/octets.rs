//! The panel with the bytes of the selected frame. The bytes of the selected field are marked.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use weft_dissector::browse::detail::FrameLocation;

use super::{line, panel};
use crate::capture::{Panel, Screen};

/// The minimum width of the panel, with borders, for 16 bytes per row. A narrower panel has 8 bytes
/// per row.
pub(super) const WIDE: u16 = 75;
/// The width of the panel, with borders, for 8 bytes per row.
pub(super) const NARROW: u16 = 42;

pub(super) fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let focused = screen.focus == Panel::Octets;
    let theme = screen.theme;
    let columns = if area.width >= WIDE { 16 } else { 8 };
    if screen.octets.columns != columns {
        screen.octets.columns = columns;
        screen.octets.list.selected = screen.octets.cursor / columns;
    }
    let place = screen.fields.selected().map(|line| line.place.clone()).unwrap_or_default();
    let inside = panel(&title(&place), &below(screen, &place), focused, theme, area, buf);
    let octets = screen.detail().map_or(&[][..], |detail| &detail.octets);
    let mut list = screen.octets.list;
    list.place(inside);
    let window = list.window(octets.len().div_ceil(columns), usize::from(inside.height));
    let cursor = focused.then_some(screen.octets.cursor);
    for (row, at) in window.clone().enumerate() {
        let start = at * columns;
        let Some(chunk) = octets.get(start..octets.len().min(start + columns)) else { break };
        let style = |offset: usize| match (cursor == Some(offset), place.contains(offset)) {
            (true, _) => theme.cursor(),
            (false, true) => theme.marked(),
            (false, false) => Style::new(),
        };
        let mut spans = vec![Span::styled(format!(" {start:04x}  "), theme.faint())];
        for (i, octet) in chunk.iter().enumerate() {
            spans.push(Span::styled(format!("{octet:02x}"), style(start + i)));
            // Mark the gap between two bytes if both bytes are marked.
            let both = place.contains(start + i) && place.contains(start + i + 1) && i + 1 < chunk.len();
            let gap = if i == 7 && columns == 16 { "  " } else { " " };
            spans.push(Span::styled(gap, if both { theme.marked() } else { Style::new() }));
        }
        let missing = columns - chunk.len();
        let middle = usize::from(columns == 16 && chunk.len() < 8);
        spans.push(Span::raw(" ".repeat(3 * missing + middle + 1)));
        for (i, octet) in chunk.iter().enumerate() {
            let shown = if (0x20..0x7f).contains(octet) { char::from(*octet) } else { '·' };
            spans.push(Span::styled(shown.to_string(), style(start + i)));
        }
        line(&Line::from(spans), row, Style::new(), inside, buf);
    }
    screen.octets.list = list;
}

fn title(place: &FrameLocation) -> String {
    match place.in_frame.as_slice() {
        [] => "Bytes".to_owned(),
        [range] if range.len() == 1 => format!("Byte {}", range.start),
        [range] => format!("Bytes {}..{}", range.start, range.end - 1),
        [first, ..] => format!("Bytes from {}, in {} parts", first.start, place.in_frame.len()),
    }
}

fn below(screen: &Screen, place: &FrameLocation) -> String {
    let mut notes = Vec::new();
    if let [first, more @ ..] = place.other_frames.as_slice() {
        let others = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        notes.push(format!("also in frame {first}{others}"));
    }
    if let Some(detail) = screen.detail().filter(|detail| detail.octets.len() < detail.captured) {
        notes.push(format!("first {} of {} bytes", detail.octets.len(), detail.captured));
    }
    notes.join(", ")
}
