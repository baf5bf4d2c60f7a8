//! The panel with the tree of cases.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use weft_suites::model::Verdict;

use super::{line, panel};
use crate::run::progress::{State, counts};
use crate::run::tree::{Kind, Node};
use crate::run::{Panel, Screen};

pub(super) fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let focused = screen.focus == Panel::Cases;
    let theme = screen.theme;
    let inside = panel("Cases", "", focused, theme, area, buf);
    let len = screen.tree.shown().len();
    screen.tree.list.place(inside);
    let window = screen.tree.list.window(len, usize::from(inside.height));
    let selected = screen.tree.list.selected;
    for (at, node) in screen.tree.shown().enumerate().skip(window.start).take(window.len()) {
        let row = at - window.start;
        let sign = match node.kind {
            Kind::Branch { .. } if screen.tree.is_open(node) => "▾ ",
            Kind::Branch { .. } => "▸ ",
            Kind::Case(_) => "  ",
        };
        let label = format!("{:indent$}{sign}{}", "", node.label, indent = 2 * node.depth);
        let style = if at == selected { theme.selected(focused) } else { Style::new() };
        line(&Line::from(label), row, style, inside, buf);
        // The verdict is at the right edge. It covers the end of a long label.
        let (word, look) = state(screen, node);
        let width = u16::try_from(word.chars().count() + 2).unwrap_or(u16::MAX).min(inside.width);
        let right = Rect { x: inside.right() - width, width, ..inside };
        line(&Line::from(Span::styled(format!(" {word} "), look)), row, Style::new(), right, buf);
    }
}

fn state(screen: &Screen, node: &Node) -> (String, Style) {
    let theme = screen.theme;
    match node.kind {
        Kind::Case(place) => match &screen.progress.planned[place].state {
            State::Waiting => ("planned".to_owned(), theme.faint()),
            State::Running(_) => ("running".to_owned(), theme.heading()),
            State::Done(result) => (result.verdict.to_string(), theme.verdict(result.verdict)),
        },
        Kind::Branch { first, end } => {
            let counts = counts(&screen.progress.planned[first..end]);
            let bad: Vec<(Verdict, u64)> = [Verdict::Error, Verdict::Fail, Verdict::Inconclusive]
                .into_iter()
                .map(|verdict| (verdict, counts.of(verdict)))
                .filter(|(_, count)| *count > 0)
                .collect();
            let look = bad.first().map_or(theme.faint(), |(verdict, _)| theme.verdict(*verdict));
            let bad: String = bad.iter().map(|(verdict, count)| format!("{count} {verdict}, ")).collect();
            (format!("{bad}{}/{}", counts.total(), end - first), look)
        }
    }
}
