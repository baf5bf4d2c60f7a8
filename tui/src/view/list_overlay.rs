//! A list that covers the panels. The list of storage commands has a second panel below the list,
//! with the details of the selected command.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;

use super::{line, panel};
use crate::capture::list_overlay::ListOverlay;
use crate::theme::Theme;
use crate::wrap::wrap;

/// The maximum height of the details, with their border.
const DETAILS_HEIGHT: u16 = 12;

pub(super) fn draw(overlay: &mut ListOverlay, theme: Theme, area: Rect, buf: &mut Buffer) {
    overlay.fit(usize::from(area.width).saturating_sub(2));
    let area = match overlay.details() {
        Some((title, texts)) => {
            let height = DETAILS_HEIGHT.min(area.height / 2);
            let [above, below] = Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(area);
            details(&title, &texts, theme, below, buf);
            above
        }
        None => area,
    };
    let inside = panel(&overlay.title(), overlay.keys(), true, theme, area, buf);
    if overlay.lines.is_empty() {
        line(&Line::from(format!(" {}", overlay.note)), 0, theme.faint(), inside, buf);
    }
    overlay.list.place(inside);
    let window = overlay.list.window(overlay.lines.len(), usize::from(inside.height));
    for (at, shown) in overlay.lines[window.clone()].iter().enumerate() {
        let base = shown.severity.map_or(Style::new(), |severity| theme.severity(severity));
        let is_selected = window.start + at == overlay.list.selected;
        let style = if is_selected { base.patch(theme.selected(true)) } else { base };
        line(&Line::from(shown.text.as_str()), at, style, inside, buf);
    }
}

/// Draws the details. If the panel is too small, its last row has the number of hidden rows.
fn details(title: &str, texts: &[String], theme: Theme, area: Rect, buf: &mut Buffer) {
    let inside = panel(title, "", false, theme, area, buf);
    let (width, height) = (usize::from(inside.width).saturating_sub(1), usize::from(inside.height));
    let mut rows: Vec<String> = texts.iter().flat_map(|text| wrap(text, width)).collect();
    if rows.len() > height {
        let hidden = rows.len() + 1 - height.max(1);
        rows.truncate(height.saturating_sub(1));
        rows.push(format!("and {hidden} more rows; a larger terminal shows them"));
    }
    for (at, row) in rows.iter().enumerate() {
        line(&Line::from(format!(" {row}")), at, Style::new(), inside, buf);
    }
}
