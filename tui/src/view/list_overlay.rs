//! A list that covers the panels.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::{line, panel};
use crate::capture::list_overlay::ListOverlay;
use crate::theme::Theme;

pub(super) fn draw(overlay: &mut ListOverlay, theme: Theme, area: Rect, buf: &mut Buffer) {
    overlay.fit(usize::from(area.width).saturating_sub(2));
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
