//! The mouse: a click selects a line, a click on a selected line opens it or follows its link, and
//! the wheel scrolls the panel below the pointer.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::motion::Motion;

/// Lines that the wheel scrolls.
pub(crate) const WHEEL: usize = 3;

/// An action of the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mouse {
    /// The left button was pressed.
    Click(Position),
    /// The wheel was turned.
    Scroll(Position, Motion),
}

/// The action of an event, if it has one.
pub(crate) fn mouse(event: MouseEvent) -> Option<Mouse> {
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Mouse::Click(at)),
        MouseEventKind::ScrollDown => Some(Mouse::Scroll(at, Motion::Down)),
        MouseEventKind::ScrollUp => Some(Mouse::Scroll(at, Motion::Up)),
        _ => None,
    }
}
