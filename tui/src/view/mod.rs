//! Draws the screens. There is one file for each panel, and two files for the layout of the two
//! screens. The functions draw the state of a screen. They change only scroll positions.

mod capture;
mod case;
mod cases;
mod fields;
mod help;
mod input_line;
mod list_overlay;
mod octets;
mod packets;
mod run;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Widget};

use crate::theme::Theme;

/// A screen that can be drawn.
pub(crate) trait Draw {
    /// Draws the state of the screen. Changes only scroll positions.
    fn draw(&mut self, frame: &mut Frame<'_>);
}

/// Draws the border of a panel and returns the area inside.
fn panel(title: &str, below: &str, focused: bool, theme: Theme, area: Rect, buf: &mut Buffer) -> Rect {
    let mut block = Block::bordered().border_style(theme.border(focused)).title(Line::from(format!(" {title} ")));
    if !below.is_empty() {
        block = block.title_bottom(Line::from(format!(" {below} ")));
    }
    let inside = block.inner(area);
    block.render(area, buf);
    inside
}

/// Draws one line in `area`, `row` lines below the top. The style applies up to the right edge.
fn line(line: &Line<'_>, row: usize, style: Style, area: Rect, buf: &mut Buffer) {
    let Some(y) = u16::try_from(row).ok().filter(|row| *row < area.height).map(|row| area.y + row) else { return };
    buf.set_line(area.x, y, line, area.width);
    buf.set_style(Rect { y, height: 1, ..area }, style);
}

/// Draws a line with a text at the left and a text at the right. Truncates the text at the left if
/// the line is too narrow for both texts.
fn bar(left: &str, right: &str, style: Style, area: Rect, buf: &mut Buffer) {
    let (width, right_len) = (usize::from(area.width), right.chars().count());
    let room = width.saturating_sub(right_len + usize::from(right_len > 0));
    let mut words: String = left.chars().take(room).collect();
    if words.len() < left.len() && words.pop().is_some() {
        words.push('…');
    }
    words.extend(std::iter::repeat_n(' ', width.saturating_sub(words.chars().count() + right_len)));
    line(&Line::from(words + right), 0, style, area, buf);
}
