//! A list over the panels.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::{line, panel};
use crate::capture::sheet::Sheet;
use crate::theme::Theme;

pub(super) fn draw(sheet: &mut Sheet, theme: Theme, area: Rect, buf: &mut Buffer) {
    sheet.fit(usize::from(area.width).saturating_sub(2));
    let inside = panel(&sheet.title(), "Enter: go to frame   q: back", true, theme, area, buf);
    if sheet.lines.is_empty() {
        line(&Line::from(format!(" {}", sheet.note)), 0, theme.faint(), inside, buf);
    }
    sheet.list.place(inside);
    let window = sheet.list.window(sheet.lines.len(), usize::from(inside.height));
    for (at, shown) in sheet.lines[window.clone()].iter().enumerate() {
        let base = shown.severity.map_or(Style::new(), |severity| theme.severity(severity));
        let is_selected = window.start + at == sheet.list.selected;
        let style = if is_selected { base.patch(theme.selected(true)) } else { base };
        line(&Line::from(shown.text.as_str()), at, style, inside, buf);
    }
}
