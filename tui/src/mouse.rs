//! The mouse. A click selects a line. A click on the selected line opens the branch or follows the
//! link of the line. The wheel scrolls the panel under the pointer.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::motion::Motion;

/// The number of lines that one step of the wheel scrolls.
pub(crate) const WHEEL: usize = 3;

/// An action of the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mouse {
    /// The left button was pressed.
    Click(Position),
    /// The wheel was turned.
    Scroll(Position, Motion),
}

/// Returns the action of a mouse event, or `None` if the event has no action.
pub(crate) fn mouse(event: MouseEvent) -> Option<Mouse> {
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Mouse::Click(at)),
        MouseEventKind::ScrollDown => Some(Mouse::Scroll(at, Motion::Down)),
        MouseEventKind::ScrollUp => Some(Mouse::Scroll(at, Motion::Up)),
        _ => None,
    }
}
