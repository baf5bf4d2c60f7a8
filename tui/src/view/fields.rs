//! The panel with the field tree of the selected frame. Long fields take several rows.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::{line, panel};
use crate::address::short_pair;
use crate::capture::fields::{self, Fields};
use crate::capture::{Panel, Screen};
use crate::wrap::wrap;

/// The maximum number of rows of a field that is not selected.
const MAX_ROWS: usize = 2;
/// The minimum width of the text of a field.
const MIN_TEXT: usize = 8;

pub(super) fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let focused = screen.focus == Panel::Fields;
    let theme = screen.theme;
    let title = match screen.row() {
        Some(row) if screen.detail().is_some() => format!("Fields of frame {}", row.number),
        Some(row) if screen.follows_newest => format!("Fields of frame {}: p or k pauses the list", row.number),
        Some(row) => format!("Fields of frame {}, reading", row.number),
        None => "Fields".to_owned(),
    };
    let about = screen.fields.selected().map(|line| line.about.as_str()).unwrap_or_default();
    let about = short_pair(about, usize::from(area.width).saturating_sub(4));
    let inside = panel(&title, &about, focused, theme, area, buf);
    let (width, height) = (usize::from(inside.width), usize::from(inside.height));
    let len = screen.fields.shown().len();
    screen.fields.list.place(inside);
    let top = screen.fields.list.window(len, height).start;
    let selected = screen.fields.list.selected;
    let mut rows = Vec::new();
    let first = first(&screen.fields, top, width, height);
    for (at, field) in screen.fields.shown().enumerate().skip(first) {
        let base = field.severity.map_or(Style::new(), |severity| theme.severity(severity));
        let style = if at == selected { base.patch(theme.selected(focused)) } else { base };
        for text in texts(&screen.fields, field, width, at == selected) {
            line(&Line::from(text), rows.len(), style, inside, buf);
            rows.push(at);
        }
        if rows.len() >= height {
            break;
        }
    }
    screen.fields.rows = rows;
}

/// Returns the index of the first field in the panel, from `top` on. All rows of the selected field
/// are in the panel, if the panel has enough rows.
fn first(fields: &Fields, top: usize, width: usize, height: usize) -> usize {
    let selected = fields.list.selected;
    let shown = fields.shown().enumerate().skip(top).take((selected + 1).saturating_sub(top));
    let rows: Vec<usize> = shown.map(|(at, field)| texts(fields, field, width, at == selected).len()).collect();
    let mut total: usize = rows.iter().sum();
    let mut first = top;
    for rows in rows {
        if total <= height || first >= selected {
            break;
        }
        total -= rows;
        first += 1;
    }
    first
}

/// Returns the rows of a field. A field that is not selected has at most [`MAX_ROWS`] rows.
fn texts(fields: &Fields, field: &fields::Line, width: usize, is_selected: bool) -> Vec<String> {
    let sign = match field.is_branch {
        true if fields.is_open(field) => "▾ ",
        true => "▸ ",
        false => "  ",
    };
    let indent = 2 * field.depth;
    let room = width.saturating_sub(indent + 2).max(MIN_TEXT);
    let mut parts = match field.text.chars().count() > room {
        true => wrap(&field.text, room),
        false => vec![field.text.clone()],
    };
    if parts.len() > MAX_ROWS && !is_selected {
        parts.truncate(MAX_ROWS);
        if let Some(last) = parts.last_mut() {
            *last = last.chars().take(room - 1).chain(['…']).collect();
        }
    }
    let row = |(number, part): (usize, &String)| {
        let sign = if number == 0 { sign } else { "  " };
        format!("{:indent$}{sign}{part}", "")
    };
    parts.iter().enumerate().map(row).collect()
}
