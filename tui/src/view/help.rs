//! The help, which covers the panels.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use super::{line, panel};
use crate::command::keys;
use crate::theme::Theme;
use crate::wrap::wrap;

/// Draws the help for the keys, and the notes in `about`.
pub(super) fn draw(of_run: bool, about: &str, theme: Theme, area: Rect, buf: &mut Buffer) {
    const WIDTH: u16 = 76;
    let notes = wrap(about, usize::from(WIDTH) - 4);
    let keys: Vec<_> = keys(of_run).collect();
    let height = u16::try_from(keys.len() + notes.len() + 3).unwrap_or(u16::MAX);
    let area = area.centered(Constraint::Length(WIDTH), Constraint::Length(height));
    Clear.render(area, buf);
    let inside = panel("Help", "any key goes back", true, theme, area, buf);
    for (row, (keys, what)) in keys.iter().enumerate() {
        let text = Line::from(vec![Span::styled(format!(" {keys:<20}"), theme.heading()), Span::raw(*what)]);
        line(&text, row, Style::new(), inside, buf);
    }
    for (row, note) in notes.iter().enumerate() {
        line(&Line::from(format!(" {note}")), keys.len() + 1 + row, theme.faint(), inside, buf);
    }
}
