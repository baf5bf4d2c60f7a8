//! The mouse: a click selects, a click on what is selected opens it or goes there, the wheel scrolls what is below it.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::command::Motion;

/// Lines that the wheel scrolls.
pub(crate) const WHEEL: usize = 3;

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mouse {
    /// The left button went down there.
    Click(Position),
    /// The wheel was turned there.
    Scroll(Position, Motion),
}

/// What an event means, if it means anything.
pub(crate) fn mouse(event: MouseEvent) -> Option<Mouse> {
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Mouse::Click(at)),
        MouseEventKind::ScrollDown => Some(Mouse::Scroll(at, Motion::Down)),
        MouseEventKind::ScrollUp => Some(Mouse::Scroll(at, Motion::Up)),
        _ => None,
    }
}
