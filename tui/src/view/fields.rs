//! The panel with the field tree of the selected frame.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::{line, panel};
use crate::capture::{Panel, Screen};

pub(super) fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let focused = screen.focus == Panel::Fields;
    let theme = screen.theme;
    let title = match screen.row() {
        Some(row) if screen.detail().is_some() => format!("Fields of frame {}", row.number),
        Some(row) if screen.follows_newest => format!("Fields of frame {}: p or k pauses the list", row.number),
        Some(row) => format!("Fields of frame {}, reading", row.number),
        None => "Fields".to_owned(),
    };
    let about = screen.fields.selected().map(|line| line.about.clone()).unwrap_or_default();
    let inside = panel(&title, &about, focused, theme, area, buf);
    let len = screen.fields.shown().len();
    screen.fields.list.place(inside);
    let window = screen.fields.list.window(len, usize::from(inside.height));
    let selected = screen.fields.list.selected;
    for (at, shown) in screen.fields.shown().enumerate().skip(window.start).take(window.len()) {
        let sign = match shown.is_branch {
            true if screen.fields.is_open(shown) => "▾ ",
            true => "▸ ",
            false => "  ",
        };
        let base = shown.severity.map_or(Style::new(), |severity| theme.severity(severity));
        let style = if at == selected { base.patch(theme.selected(focused)) } else { base };
        let text = Line::from(format!("{:indent$}{sign}{}", "", shown.text, indent = 2 * shown.depth));
        line(&text, at - window.start, style, inside, buf);
    }
}
